"""The smallest MCP server over stdio: one tool, which repeats its arguments. Run as a file."""

import json
import sys

INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "doctor", "version": "1"},
}
TOOLS = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        called = {"content": [{"type": "text", "text": json.dumps(asked.get("params", {}).get("arguments"))}]}
        result = {"initialize": INFO, "tools/list": TOOLS, "tools/call": called}.get(asked["method"])
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
