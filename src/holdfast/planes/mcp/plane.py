"""The MCP plane: every server of an agent, over stdio or HTTP, through the faults of its trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from holdfast.planes.mcp import rpc
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.frames import Line
from holdfast.planes.mcp.stdio import Pipe
from holdfast.planes.mcp.visit import Visit
from holdfast.protocols import Trip

if TYPE_CHECKING:
    from holdfast.planes.http1.client import Upstreams
    from holdfast.planes.http1.server import Exchange


class McpPlane:
    """Stands before the servers. `servers` are those over HTTP, by name; those over stdio bring their own pipes."""

    def __init__(self, servers: Mapping[str, Target], upstreams: Upstreams) -> None:
        self._servers = servers
        self._upstreams = upstreams
        self._visits: WeakKeyDictionary[Trip, Visit] = WeakKeyDictionary()

    async def serve(self, exchange: Exchange, server: str, trip: Trip) -> None:
        """One request from a mooring: a relay's CONNECT, or a client's HTTP. `server` is the rest of the path."""
        if exchange.head.method == "CONNECT":
            await self.serve_stdio(await exchange.take_over(), server, trip)
        else:
            await self.serve_http(exchange, unquote(server.partition("?")[0].rstrip("/")), trip)

    async def serve_stdio(self, line: Line, server: str, trip: Trip) -> None:
        """A relay, until the client or the server has ended."""
        await Pipe(line, server, trip, self._visit(trip)).serve()

    async def serve_http(self, exchange: Exchange, server: str, trip: Trip) -> None:
        """One request of a client to a server over HTTP."""
        from holdfast.planes.mcp.streamable import Post

        target = self._servers.get(server)
        if target is None:
            line = rpc.error(None, rpc.INTERNAL_ERROR, f"there is no MCP server {server!r} here")
            await exchange.respond(404, (("content-type", "application/json"),), line)
        elif exchange.head.method not in ("GET", "POST", "DELETE"):
            await exchange.respond(405, (("allow", "GET, POST, DELETE"),))
        else:
            await Post(exchange, server, target, self._upstreams, trip, self._visit(trip)).serve()

    def names(self, trip: Trip) -> frozenset[str]:
        """The tools that were listed or called by MCP in this trial."""
        visit = self._visits.get(trip)
        return frozenset(visit.tools) if visit is not None else frozenset()

    def leave(self, trip: Trip) -> None:
        """The trial is over: calls that nobody answered are told to its trace as unfinished."""
        visit = self._visits.pop(trip, None)
        if visit is not None:
            visit.leave()

    def _visit(self, trip: Trip) -> Visit:
        visit = self._visits.get(trip)
        if visit is None:
            visit = self._visits[trip] = Visit()
        return visit
