"""A websocket to a model's base URL: rejected if HTTP works as well, otherwise passed to a provider unread."""

from __future__ import annotations

import msgspec

from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.http1.heads import JSON_TYPE, RequestHead
from holdfast.http1.outgoing_request import parse_endpoint
from holdfast.http1.relay import ConnectionUpgraded, forward_upgrade
from holdfast.http1.server import Exchange
from holdfast.model.trace import TraceEvent
from holdfast.planes.call_report import CallReport
from holdfast.planes.llm.reply_sender import send_error
from holdfast.planes.llm.sources.assigned import AssignedServer
from holdfast.planes.llm.sources.provider import Provider, build_down_error, extract_origin
from holdfast.planes.llm.sources.provider_hosts import remove_key
from holdfast.planes.llm.sources.source import ModelSource, Query, UpstreamDown
from holdfast.protocols.trial import TrialContext
from holdfast.streams.socket_stream import SocketStream

_SWITCHING = ((b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
_NO_WEBSOCKET = 426
"""Upgrade Required: the only status after which clients that support both are known to switch to HTTP immediately."""


async def refuse_websocket(context: TrialContext, exchange: Exchange, path: str) -> None:
    """Reject a websocket whose client can use HTTP, which faults and traces support."""
    context.sink.note(
        f"a websocket to the model ({path.partition('?')[0]}) was rejected with status {_NO_WEBSOCKET}: "
        "faults act on the HTTP API instead"
    )
    error = {"error": {"message": "websockets are not supported: use HTTP", "type": "holdfast"}}
    await exchange.respond(_NO_WEBSOCKET, JSON_TYPE, msgspec.json.encode(error))


class Websocket:
    """One websocket, from its request to its end."""

    def __init__(self, context: TrialContext, exchange: Exchange, query: Query) -> None:
        self._context = context
        self._exchange = exchange
        self._query = query
        self._path = remove_key(query.path)
        self._report = CallReport(context, "llm", "", 0)

    async def run(self, source: ModelSource, upstreams: Upstreams) -> None:
        """Run until the websocket has ended, and report it to the trace."""
        try:
            head, wire = await self._connect(source, upstreams)
            self._report.status = 101
            await forward_upgrade(self._exchange, head, wire)
        except ConnectionUpgraded as passed:
            self._report.status = passed.status
        except (UpstreamDown, UpstreamFailed) as failed:
            status = 502 if isinstance(failed, UpstreamFailed) or failed.kind else _NO_WEBSOCKET
            self._context.sink.add_error(str(failed), "model-unavailable")
            await send_error(self._exchange, self._report, self._query.codec, str(failed), status)
        except ConnectionError:
            self._report.error_type = "client_gone"
        finally:
            self.report_end()

    def report_end(self) -> None:
        """Report the websocket once, when it or the trial has ended."""
        if self._report.status == 101:
            bare = self._path.partition("?")[0]
            why = "faults do not act on it, and the calls that the model requests are not in the trace"
            self._context.sink.note(f"a websocket to the model ({bare}) passed unread: {why}")
        tool = f"{self._query.method} {self._query.base_url or ''}{self._path}"
        self._report.report(TraceEvent(self._report.began, "http_call", tool, "llm", offers_tools=True))

    async def _connect(self, source: ModelSource, upstreams: Upstreams) -> tuple[RequestHead, SocketStream]:
        if not isinstance(source, Provider | AssignedServer):
            bare = self._path.partition("?")[0]
            raise UpstreamDown(
                f"the agent opens a websocket ({bare}): neither a script nor a recording can answer it, and it cannot "
                "be recorded. Make the agent use HTTP, or use a provider"
            )
        to = await source.find_destination(self._query)
        endpoint = parse_endpoint(to.url)
        fields = (*to.headers, *_SWITCHING, (b"host", endpoint.place.encode("latin-1")))
        try:
            wire = await upstreams.open_stream(endpoint, to.addresses, tls=endpoint.scheme == "https")
        except UpstreamFailed as failed:
            raise build_down_error(failed, extract_origin(to.url.partition("?")[0])) from failed
        return RequestHead(self._query.method, endpoint.target, fields), wire
