"""An MCP server over stdio, started as a client starts it from the configuration that we wrote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from holdfast.doctor.probe_site import ProbeSite, Unmet, started
from holdfast.model.spec import Injection, Schedule

FIX = "the relay is started by the interpreter of Holdfast and must reach 127.0.0.1: check what sandboxes it"
_FAULT = Injection("tool", "echo", "error", {"message": "met"}, Schedule(on_call=2))


async def try_stdio(probe_site: ProbeSite) -> str:
    """The first call of a tool passes, the second meets its fault."""
    async with probe_site.trial("mcp", _FAULT) as (environ, context):
        config = json.loads(Path(environ["HOLDFAST_MCP_CONFIG"]).read_text("utf-8"))
        entry = config["mcpServers"]["doctor"]
        async with started([entry["command"], *entry["args"]], entry["env"]) as server:
            await _ask(server, 1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
            passed = await _ask(server, 2, "tools/call", {"name": "echo", "arguments": {"word": "passed"}})
            broken = await _ask(server, 3, "tools/call", {"name": "echo", "arguments": {"word": "broken"}})
    if "passed" not in passed["content"][0]["text"]:
        raise Unmet(f"an untouched result arrived as {passed}", FIX)
    if not broken.get("isError") or [met.plane for met in context.ledger] != ["mcp"]:
        raise Unmet(f"the fault did not arrive, but {broken}", FIX)
    return "through the relay: one call passed, one met its fault"


async def _ask(server: asyncio.subprocess.Process, number: int, method: str, params: dict[str, Any]) -> Any:
    assert server.stdin is not None
    assert server.stdout is not None
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(asked).encode() + b"\n")
    await server.stdin.drain()
    line = await server.stdout.readline()
    if not line:
        _, err = await server.communicate()
        raise Unmet(f"the relay ended: {err.decode('utf-8', 'replace').strip()[-300:]}", FIX)
    answer = json.loads(line)
    if "result" not in answer:
        raise Unmet(f"{method} was answered by {line.decode('utf-8', 'replace')[:300]}", FIX)
    return answer["result"]
