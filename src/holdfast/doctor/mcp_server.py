"""A minimal MCP server over stdio with one tool, which returns its arguments. Run as a file."""

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
        request = json.loads(line)
        echo = {"content": [{"type": "text", "text": json.dumps(request.get("params", {}).get("arguments"))}]}
        result = {"initialize": INFO, "tools/list": TOOLS, "tools/call": echo}.get(request["method"])
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
