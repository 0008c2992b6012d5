"""The MCP plane: every server of an agent, over stdio or HTTP, through the faults of its trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from holdfast.planes.mcp import rpc
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.stdio import Pipe, RelayConnection
from holdfast.planes.mcp.trial_state import McpTrialState
from holdfast.protocols.trial import TrialContext

if TYPE_CHECKING:
    from holdfast.http1.client import Upstreams
    from holdfast.http1.server import Exchange


class McpPlane:
    """Handles requests to the servers. `servers` are those over HTTP, by name; those over stdio bring their own
    pipes."""

    def __init__(self, servers: Mapping[str, Target], upstreams: Upstreams) -> None:
        self._servers = servers
        self._upstreams = upstreams
        self._visits: WeakKeyDictionary[TrialContext, McpTrialState] = WeakKeyDictionary()

    async def serve(self, exchange: Exchange, server: str, context: TrialContext) -> None:
        """Serve one request from an address: a relay's CONNECT, or a client's HTTP. `server` is the rest of the
        path."""
        if exchange.head.method == "CONNECT":
            await self.serve_stdio(await exchange.take_over(), server, context)
        else:
            await self.serve_http(exchange, unquote(server.partition("?")[0].rstrip("/")), context)

    async def serve_stdio(self, connection: RelayConnection, server: str, context: TrialContext) -> None:
        """Serve a relay until the client or the server has ended."""
        await Pipe(connection, server, context, self._get_state(context)).serve()

    async def serve_http(self, exchange: Exchange, server: str, context: TrialContext) -> None:
        """Serve one request of a client to an HTTP server."""
        from holdfast.planes.mcp.streamable import McpHttpRequest

        target = self._servers.get(server)
        if target is None:
            line = rpc.write_error(None, rpc.INTERNAL_ERROR, f"there is no MCP server {server!r} here")
            await exchange.respond(404, (("content-type", "application/json"),), line)
        elif exchange.head.method not in ("GET", "POST", "DELETE"):
            await exchange.respond(405, (("allow", "GET, POST, DELETE"),))
        else:
            await McpHttpRequest(exchange, server, target, self._upstreams, context, self._get_state(context)).serve()

    def list_tool_names(self, context: TrialContext) -> frozenset[str]:
        """Return the tools that were listed or called over MCP in this trial."""
        visit = self._visits.get(context)
        return frozenset(visit.tools) if visit is not None else frozenset()

    def end_trial(self, context: TrialContext) -> None:
        """End a trial: its unanswered calls are reported to its trace as unfinished."""
        visit = self._visits.pop(context, None)
        if visit is not None:
            visit.end_trial()

    def _get_state(self, context: TrialContext) -> McpTrialState:
        visit = self._visits.get(context)
        if visit is None:
            visit = self._visits[context] = McpTrialState()
        return visit
