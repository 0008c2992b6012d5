"""The LLM gateway: an agent's model calls, in the provider's own format, with the faults of its trial applied.

A call without a fault passes as bytes. If a fault fires, the reply is read completely, changed in neutral form and
written again in the agent's format.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.http1.relay import is_upgrade_request
from holdfast.http1.server import Exchange
from holdfast.model.codec import digest
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.formats import ApiRoute, find_route
from holdfast.planes.llm.codecs.loose import dump_json, parse_json
from holdfast.planes.llm.codecs.openai_chat_request import find_calls
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.earlier_requests import Attempts, EarlierCalls
from holdfast.planes.llm.known_results import ChangedCall, KnownResult
from holdfast.planes.llm.model_call import ModelCall
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders
from holdfast.planes.llm.sources.router import Router
from holdfast.planes.llm.sources.source import Query
from holdfast.planes.llm.tool_results import ToolResults
from holdfast.planes.llm.websocket import Websocket, refuse_websocket
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext

PLANE = "llm"


class Gateway(Struct, frozen=True):
    """The settings that the model calls of all trials share."""

    router: Router
    models: Mapping[str, ModelSpec]
    on_calls: bool = True
    """Whether faults of the model act here; false if the agent's own model functions are wrapped."""
    on_results: bool = True
    """Whether faults of tools act on tool results here; false if the agent's own tools are wrapped."""


class TrialGateway:
    """The model calls of one trial."""

    def __init__(self, gateway: Gateway, context: TrialContext, other_tools: Callable[[], Container[str]]) -> None:
        self._gateway = gateway
        self._context = context
        self._attempts = Attempts()
        self._tool_results = ToolResults(context, other_tools, faulty=gateway.on_results)
        self._earlier_calls = EarlierCalls()
        self._websockets: set[Websocket] = set()
        self._in_progress: list[ModelCall] = []
        self._side_requests: set[ModelCall] = set()
        """Other requests in progress: they may fetch the replies to earlier completions."""
        self._has_overlap = False
        """Whether two calls have overlapped."""

    async def serve(self, exchange: Exchange, provider: str, path: str, base_url: str | None = None) -> None:
        """Answer one request; `path` is the part after the base URL."""
        if self._context.sink.limit:
            await end_over_limit(exchange)
            return
        if exchange.upgrade and is_upgrade_request(exchange.head):
            await self._serve_websocket(exchange, provider, path, base_url)
            return
        body = await exchange.read_body()
        data = parse_json(body) if body else None
        method, headers = exchange.head.method, AgentHeaders(exchange.head.headers)
        route, trial = find_route(method, path), self._context.trial.id
        query = Query(provider, method, path, headers, body, trial, data, base_url=base_url)
        if route is None or route.kind != "completion" or not route.codec or not isinstance(data, dict):
            if route is not None and route.kind == "completion":
                self._context.sink.note(f"a model call whose body is not a JSON object passed unread: {shorten(path)}")
            await self._forward_other(exchange, query, route)
        else:
            request = route.codec.read_request(path, data)
            await self._serve_completion(
                exchange, replace(query, codec=route.codec, request=request, digest=digest(body))
            )

    async def _forward_other(self, exchange: Exchange, query: Query, route: ApiRoute | None) -> None:
        """Answer a request that is not a completion."""
        model_call = ModelCall(self._context, exchange, query, self._gateway.models)
        if route is not None and route.unread:
            self._context.sink.record_unread_model(query.base_url or query.provider, route.unread)
        may_fetch_calls = route is None or route.kind not in ("embeddings", "models")
        if may_fetch_calls:
            self._side_requests.add(model_call)
        try:
            await model_call.forward_other(self._gateway.router, route)
        finally:
            self._side_requests.discard(model_call)
        if may_fetch_calls:
            self._record_fetched(model_call)

    def _record_fetched(self, model_call: ModelCall) -> None:
        """Record the tool calls in a fetched reply, once it is complete; the agent may fetch it several times."""
        reply = model_call.delivered_reply
        if model_call.has_unread_rest(reply):
            self._tool_results.record_unread_reply()
        elif reply is not None and reply.finish:
            self._tool_results.record_fetched((*reply.tool_calls, *reply.other_calls))

    async def _serve_websocket(self, exchange: Exchange, provider: str, path: str, base_url: str | None) -> None:
        """Handle a websocket: if the path also supports HTTP, its client is sent there; otherwise it passes unread."""
        route = find_route("POST", path)
        if route is not None and route.kind == "completion":
            await refuse_websocket(self._context, exchange, path)
            return
        model_name = dict(parse_qsl(path.partition("?")[2])).get("model", "")
        method, trial, headers = exchange.head.method, self._context.trial.id, AgentHeaders(exchange.head.headers)
        query = Query(provider, method, path, headers, b"", trial, {"model": model_name}, base_url=base_url)
        socket = Websocket(self._context, exchange, query)
        self._websockets.add(socket)
        try:
            await socket.run(self._gateway.router.get_source(provider, model_name), self._gateway.router.upstreams)
        finally:
            self._websockets.discard(socket)

    def close(self) -> None:
        """End the trial, and report the calls that are in progress."""
        for socket in self._websockets:
            socket.report_end()
        for model_call in self._in_progress:
            model_call.end_trial()
            self._record_calls(model_call)
        self._tool_results.close()
        self._gateway.router.forget(self._context.trial.id)

    async def _serve_completion(self, exchange: Exchange, query: Query) -> None:
        key = query.digest
        # A client that gave up and repeats its request may be faster than the end of its first attempt here. That
        # attempt must count as failed before the repetition is classified, or it would be taken for a new call.
        for other in self._in_progress:
            if other.attempt_key == key and other.is_gone:
                self._attempts.record_end(key, other.record.retry, failed=True, lost=True)
                other.attempt_key = ""
        retry = self._attempts.find_retry_number(exchange.head.get, key)
        # Faults of tools come before the call is numbered: they change what the model reads, and the request that goes
        # upstream, but not which call this is.
        query, changed_calls = await self._settle_results(query)
        model_call = self._create_model_call(exchange, query, retry, changed_calls)
        model_call.attempt_key = key
        self._in_progress.append(model_call)
        try:
            await model_call.answer_completion(self._gateway.router, exchange.wait)
        finally:
            self._in_progress.remove(model_call)
        if model_call.attempt_key:
            record = model_call.record
            self._attempts.record_end(key, retry, failed=bool(record.error_type), lost=record.status is None)
        self._record_calls(model_call)

    def _create_model_call(
        self, exchange: Exchange, query: Query, retry: int, changed_calls: tuple[ChangedCall, ...]
    ) -> ModelCall:
        request, injector = query.request, self._context.injector
        assert request is not None
        faulty = self._gateway.on_calls and injector.can_affect(PLANE, request.model)
        arguments: dict[str, Any] = {}
        if faulty:  # what the `match` of a model fault can name
            tools = [tool.name for tool in request.tools]
            arguments = {"model": request.model, "prompt": request.prompt, "stream": request.stream, "tools": tools}
        call = Call(PLANE, request.model, arguments, injector.count(PLANE, request.model))
        # Two calls at once have no order, so a fault on the second of them would hit another one in the next run. That
        # is worth one note per trial.
        if not self._has_overlap and self._gateway.on_calls and any(not other.is_over for other in self._in_progress):
            self._has_overlap = True
            injector.mark_concurrent()
        return ModelCall(
            self._context, exchange, query, self._gateway.models, call, retry, changed_calls, faulty=faulty
        )

    def _record_calls(self, model_call: ModelCall) -> None:
        """Record that the model has read the changed results, and once per reply the tool calls that it requested."""
        if model_call.was_read:
            self._tool_results.mark_read(model_call.changed_calls)
        if model_call.are_calls_recorded:
            return
        reply = model_call.delivered_reply
        if model_call.has_unread_rest(reply):
            self._tool_results.record_unread_reply()
        if reply is None or reply.lacks:
            return
        model_call.are_calls_recorded = True
        calls, text = (*reply.tool_calls, *reply.other_calls), reply.text
        if calls:
            self._earlier_calls.keep(calls, text, model_call.request)
            self._tool_results.record_calls(calls, model_call.request)
        elif calls := find_calls(text):
            self._tool_results.record_calls(calls, model_call.request, certain=False)

    def _record_late_calls(self) -> None:
        """Record the tool calls of replies whose end is still being sent: the agent may already have continued."""
        for model_call in self._in_progress:
            if model_call.is_over:
                self._record_calls(model_call)
        for model_call in self._side_requests:
            if model_call.is_over:
                self._record_fetched(model_call)

    async def _settle_results(self, query: Query) -> tuple[Query, tuple[ChangedCall, ...]]:
        """Return the request, with the tool results replaced that the model must read differently.

        Also returns the calls of those results that no model has read yet.
        """
        request, codec = query.request, query.codec
        assert request is not None
        assert codec is not None
        changed = await self._find_changed(request, query.digest) if request.results else {}
        if not changed:
            return replace(
                query, request=self._earlier_calls.add_conversation(request)
            ) if request.continues else query, ()
        texts = {name: decision.text or "" for name, decision in changed.items()}
        data = codec.replace_results(query.data, texts, frozenset(n for n, s in changed.items() if s.failed))
        request = self._earlier_calls.add_conversation(codec.read_request(query.path, data))
        body = dump_json(data)
        query = replace(query, body=body, data=data, request=request, digest=digest(body))
        return query, self._tool_results.list_unread(changed.values())

    async def _find_changed(self, request: ModelRequest, key: str) -> dict[str, KnownResult]:
        try:
            return await self._tool_results.settle(
                request, is_retry=self._attempts.has_failed(key), record_late_calls=self._record_late_calls
            )
        except HarnessError as broken:  # a bug in a fault: the trial is a harness error, and the agent continues
            self._context.sink.add_error(str(broken), broken.code)
            return {}


async def end_over_limit(exchange: Exchange) -> None:
    """Answer an agent that exceeded one of `agent.limits` and is being stopped."""
    exchange.keep_alive = False
    await exchange.respond(403, body=b"agent.limits: this trial is over\n")
