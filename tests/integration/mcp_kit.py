"""MCP clients of the real SDK, led through the plane of a trial."""

from __future__ import annotations

import base64
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import mcp
from mcp.client.stdio import StdioServerParameters

from holdfast.http1.server import Exchange, serve
from holdfast.model.scenario import Injection
from holdfast.model.task import Task
from holdfast.planes.mcp.config import Target, build_relay_command
from holdfast.planes.mcp.plane import McpPlane
from planes_kit import ASKED, FakeContext
from warm_python import warm_python

HERE = Path(__file__).parent
SHOP = (sys.executable, str(HERE / "mcp_server.py"))
TOKEN = "a-token"


def warm_shop() -> list[str]:
    """The shop's command, for those to whom its start does not matter."""
    return [*warm_python(), SHOP[1]]


class McpPlace:
    """A trial, its plane, and an address for relays and clients."""

    def __init__(self, context: FakeContext, plane: McpPlane, port: int) -> None:
        self.context = context
        self.plane = plane
        self.port = port

    @property
    def environ(self) -> dict[str, str]:
        return {"HOLDFAST_MCP": f"http://holdfast:{TOKEN}@127.0.0.1:{self.port}"}

    def stdio(self, command: Sequence[str] = (), name: str = "shop") -> StdioServerParameters:
        """The server's command as `agent.mcp_config` would have it; without one, the shop's."""
        server = command or warm_shop()
        first, *rest = [*build_relay_command(), "--name", name, "--", *server]
        return StdioServerParameters(command=first, args=rest, env=self.environ)

    def url(self, name: str = "shop") -> str:
        return f"http://127.0.0.1:{self.port}/mcp/{name}"

    @property
    def met(self) -> list[tuple[str, str, int, str]]:
        return [(f.target, f.mode, f.call, f.effect) for f in self.context.ledger]


@asynccontextmanager
async def mcp_place(
    injections: Sequence[Injection] = (), servers: Mapping[str, Target] | None = None, task: Task = ASKED
) -> AsyncIterator[McpPlace]:
    """A plane on loopback, for one trial with these faults."""
    from holdfast.http1.client import Upstreams

    context = FakeContext(injections, task=task)
    upstreams = Upstreams()
    plane = McpPlane(servers or {}, upstreams)
    expected = "Basic " + base64.b64encode(f"holdfast:{TOKEN}".encode()).decode()

    async def answer(exchange: Exchange) -> None:
        target = exchange.head.target
        if exchange.head.method == "CONNECT":
            assert exchange.head.get("proxy-authorization") == expected
            await plane.serve(exchange, target.removeprefix("holdfast.mcp:"), context)
        else:
            await plane.serve(exchange, target.removeprefix("/mcp/"), context)

    listener = await serve(answer)
    try:
        yield McpPlace(context, plane, listener.port)
    finally:
        plane.end_trial(context)
        await listener.close()
        await upstreams.close()


def text(result: mcp.types.CallToolResult) -> str:
    """All the text of a result."""
    return "\n".join(block.text for block in result.content if block.type == "text")
