"""One model call in progress: passed on as bytes, or read, changed and written again; then recorded in the trace."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.http1.heads import drop_hop_by_hop
from holdfast.http1.server import Exchange
from holdfast.model.completion import Completion, Pause
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.call_record import CallRecord, read_usage
from holdfast.planes.llm.codecs.formats import ApiRoute
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import OriginalStream, list_left_out
from holdfast.planes.llm.known_results import ChangedCall
from holdfast.planes.llm.provider_reply import ProviderReply
from holdfast.planes.llm.reply_sender import find_error, send_completion, send_error, send_failure, send_reply
from holdfast.planes.llm.sources.provider_hosts import remove_key
from holdfast.planes.llm.sources.router import Router
from holdfast.planes.llm.sources.source import PassedReply, Query, RawReply, UpstreamDown, WrittenReply
from holdfast.protocols.fault import Call, Failed, Reply, Sleep
from holdfast.protocols.trial import TrialContext

SHORTEST_REPLY_MS = 5.0
"""Minimum duration of a scripted or recorded reply if faults may act: a real model is never faster, and
concurrent calls of an agent must overlap."""


class NotACompletion(Exception):
    """The upstream answered, but not with a completion: its reply is forwarded unchanged."""

    def __init__(self, answered: PassedReply, body: bytes) -> None:
        super().__init__(f"{answered.origin} answered {answered.wire.status}")
        self.answered = answered
        self.body = body


class ModelCall:
    """A request of the agent and the reply to it."""

    def __init__(
        self,
        context: TrialContext,
        exchange: Exchange,
        query: Query,
        models: Mapping[str, ModelSpec],
        call: Call | None = None,
        retry: int = 0,
        changed_calls: tuple[ChangedCall, ...] = (),
        *,
        faulty: bool = False,
    ) -> None:
        self._context = context
        self.changed_calls = changed_calls
        """Calls whose changed results are in the request and that no model has read yet."""
        self._exchange = exchange
        self._query = query
        self._call = call or Call("llm", query.model, {}, 0)
        self.record = CallRecord(context, query, models, self._call, retry)
        self.attempt_key = ""
        """The key that its retries share; empty if it is known that the client has given up on it."""
        self.are_calls_recorded = False
        """Whether the tool calls in its reply are recorded."""
        self._service = f"llm:{self._call.target}" if call is not None else ""
        """The name under which a success is noted, because not all calls to a model may fail; else empty."""
        self._reply = ProviderReply(context, query, self.record, call is not None, query.codec)
        self._original: tuple[Completion, RawReply, bytes] | None = None
        """A reply that was read completely, as it arrived."""
        self._faulty = faulty
        """Whether faults may act on it."""
        self._was_reply_read = False
        """Whether the model's own reply was read, whatever happened to it afterwards."""

    @property
    def was_read(self) -> bool:
        """Whether a model has read the request and the agent was there for the head of its reply."""
        has_passed = (
            self._reply.passed is not None and self._succeeded and self.record.error_type in ("", "client_gone")
        )
        return self._exchange.is_answered and (self._was_reply_read or has_passed)

    @property
    def _succeeded(self) -> bool:
        return self.record.status is not None and self.record.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._exchange.connection.is_gone

    @property
    def is_over(self) -> bool:
        """Whether the agent received the complete answer, or left: its next request comes after this one."""
        if self.is_gone or self._exchange.is_delivered:
            return True
        passed = self._reply.read_so_far()
        return bool(passed and passed.finish)

    @property
    def request(self) -> ModelRequest:
        """The request."""
        assert self._query.request is not None
        return self._query.request

    @property
    def delivered_reply(self) -> Completion | None:
        """The model's reply, as far as it may have reached the agent."""
        completion = self.record.completion or self._reply.read_so_far()
        codec = self._query.codec
        if completion is None or not self._exchange.is_answered:
            return None
        return completion if codec is None else codec.keep_deliverable(completion)

    def has_unread_rest(self, completion: Completion | None) -> bool:
        """Return whether the agent received a reply that may contain more than Holdfast read."""
        return self._exchange.is_answered and self._succeeded and (completion is None or self._reply.is_cut)

    async def forward_other(self, router: Router, route: ApiRoute | None) -> None:
        """Forward a request that is not a completion unchanged: no fault acts on it."""
        record = self.record
        path = remove_key(self._query.path)
        runs_model = self._query.method == "POST" and (
            (route is not None and route.kind == "embeddings") or path.partition("?")[0].endswith("/completions")
        )
        if route is not None and runs_model:
            self._service, self._reply.is_expected = f"llm:{route.kind} {path}", True
        self._reply.is_side_request = route is None
        self._reply.codec = route.codec if route is not None else None
        try:
            await self._forward_reply(router)
        except UpstreamDown as down:
            await self._report_down(down)
        except ConnectionError:
            record.error_type = "client_gone"
        self._note_delivery()
        if self._reply.passed is not None and self._query.method == "POST" and self._succeeded:
            record.usage = read_usage(bytes(self._reply.body_read))
        # It used a model, and did not only ask about models or files.
        if route is not None and (runs_model or record.usage is not None):
            record.report(record.build_event(f"{route.kind} {path}"))
        else:
            event = record.build_event(f"{self._query.method} {self._query.base_url or ''}{path}")
            plane = "http" if route is None else "llm"
            record.report(replace(event, event_type="http_call", plane=plane, cost=None))

    async def answer_completion(self, router: Router, sleep: Sleep) -> None:
        """Answer a completion, through the faults of the trial."""
        record = self.record
        try:
            await (self._apply_faults(router, sleep) if self._faulty else self._forward_reply(router))
        except NotACompletion as sent:
            await self._send_foreign(sent)
        except HarnessError as broken:
            await self._report_down(broken)
        except ConnectionError:
            record.error_type = "client_gone"
        if record.error_type == "client_gone" and not self._exchange.is_answered:
            record.mark_undelivered()
        self._note_delivery()
        record.report(record.build_event())

    async def _apply_faults(self, router: Router, sleep: Sleep) -> None:
        """Answer as the faults decide; raise ConnectionResetError, with nothing sent, if no client is left to receive
        the reply."""

        async def forward(_: Call) -> Reply:
            return Reply(await self._read_completion(router))

        async def forward_untouched(_: Call) -> Reply:
            await self._forward_reply(router)
            return Reply(None)

        async def wait(ms: float) -> None:
            if self.is_gone or self._exchange.connection.has_left:
                self.record.mark_undelivered(waits=True)
            await sleep(ms)

        try:
            reply = await self._context.injector.inject(
                self._call, forward, wait, untouched=forward_untouched, retry=self.record.retry
            )
        except Failed as failed:
            self._exchange.ensure_connected()
            await send_failure(self._exchange, self.record, self._query.codec, failed)
            return
        if reply.value is None:
            return
        self.record.completion = reply.value  # it was billed, whoever receives it
        self._exchange.ensure_connected()
        # A fault that changed nothing must not cost the agent the original bytes: whatever the neutral form cannot hold
        # would be lost by writing the reply again.
        if self._original is not None and reply.value == self._original[0]:
            _, wire, body = self._original
            await send_reply(self._exchange, self.record, wire.status, drop_hop_by_hop(wire.headers), body)
            self.record.error_type = self.record.error_type or find_error(reply.value)
        else:
            await self._send_completion(reply.value, sleep)

    def _note_delivery(self) -> None:
        if self._service and not self.record.error_type:
            self._context.sink.mark_answered(self._service)

    def end_trial(self) -> None:
        """Report a call that is still in progress when the trial ends, as far as it got."""
        record = self.record
        record.error_type = record.error_type or "client_gone"
        self._reply.settle()
        event = record.build_event()
        record.report(replace(event, phase="unfinished") if record.error_type == "client_gone" else event)

    # -- from upstream ---------------------------------------------------------------------------
    async def _forward_reply(self, router: Router) -> None:
        """Forward the reply as it arrives, and read along."""
        answered = await self._request_answer(router)
        if isinstance(answered, WrittenReply):
            self._was_reply_read = not find_error(answered.completion)
            completion = answered.completion
            if self.changed_calls:
                completion = await _wait_for_start(completion, self._exchange)
            await self._send_completion(completion, self._exchange.wait if self.changed_calls else None)
            return
        # A fault on a tool result is met only if the model read it and the agent received the model's reply.
        await self._reply.forward(answered, self._exchange, requires_client=bool(self.changed_calls))

    async def _request_answer(self, router: Router) -> PassedReply | WrittenReply:
        record = self.record
        record.start_wait()
        answered = await router.get_source(self._query.provider, self._query.model).answer(self._query)
        record.billed, record.script = answered.billed, answered.script
        if self._faulty and not answered.billed:
            await self._exchange.wait(SHORTEST_REPLY_MS - record.age_ms)
        if not self._exchange.connection.is_gone:  # otherwise it was silent until the client disconnected
            record.since = None
        return answered

    async def _read_completion(self, router: Router) -> Completion:
        answered = await self._request_answer(router)
        if isinstance(answered, WrittenReply):
            self._was_reply_read = not find_error(answered.completion)
            return answered.completion
        # The client still waits while the body is read, so the silence counts as the provider's until it is complete.
        record, reply = self.record, self._reply
        if record.since is None:
            record.start_wait()
        body = await answered.wire.read()
        if not self.is_gone:
            record.since = None
        completion = reply.read_completion(answered.wire, body)
        if completion is None or reply.describe_foreign(answered.wire, body):
            raise NotACompletion(answered, body)
        self._was_reply_read = not reply.report_end_error(completion, answered.origin)
        self._original = (completion, answered.wire, body)
        return completion

    # -- to the agent ----------------------------------------------------------------------------
    async def _send_completion(self, completion: Completion, sleep: Sleep | None = None) -> None:
        record, original = self.record, self._reply.original
        record.completion, record.status, record.error_type = completion, 200, find_error(completion)
        lost = list_left_out(original, completion) if isinstance(original, OriginalStream) else ()
        if lost:
            self._context.sink.note(
                f"a fault changed the reply of {self._query.model}: its {', '.join(lost)} were dropped"
            )
        await send_completion(self._exchange, record, self._query, self._call.n, completion, original, sleep)

    async def _send_foreign(self, sent: NotACompletion) -> None:
        wire = sent.answered.wire
        self._reply.report_failure(sent.answered, sent.body)
        await send_reply(self._exchange, self.record, wire.status, drop_hop_by_hop(wire.headers), sent.body)
        if wire.status < 300:
            self.record.error_type = self.record.error_type or "upstream"

    async def _report_down(self, down: HarnessError) -> None:
        """Report a missing answer that no fault caused: the trial is a harness error. Sends 400 if a retry is
        pointless."""
        self._reply.report_error(str(down))
        status = 502 if type(down) is UpstreamDown else 400
        await send_error(self._exchange, self.record, self._query.codec, str(down), status)


async def _wait_for_start(completion: Completion, exchange: Exchange) -> Completion:
    """Return the rest of a reply, once its first bytes are due: its head must not be sent earlier."""
    # An agent that leaves before the first byte has read nothing. Sending the head before the pause would make it look
    # as if the model's reply had reached it.
    first = next((n for n, delta in enumerate(completion.deltas) if not isinstance(delta, Pause)), 0)
    await exchange.wait(sum(delta.ms for delta in completion.deltas[:first] if isinstance(delta, Pause)))
    exchange.ensure_connected()
    return replace(completion, deltas=completion.deltas[first:])
