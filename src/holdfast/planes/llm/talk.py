"""One model call under way: passed on as bytes, or read, changed and written again; then entered into the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.codec import digest
from holdfast.model.completion import Completion, ToolCall, Usage
from holdfast.model.spec import ModelSpec
from holdfast.model.trace import TEXT_KEPT, Cost, TraceEvent
from holdfast.planes.describe import shorten
from holdfast.planes.http1.heads import end_to_end, length_of
from holdfast.planes.http1.server import Exchange
from holdfast.planes.llm.asides import Like, left_out
from holdfast.planes.llm.asked import Asked
from holdfast.planes.llm.foreign import content_type, decoded, foreign
from holdfast.planes.llm.hosts import without_key
from holdfast.planes.llm.prices import estimate
from holdfast.planes.llm.speaking import Speaker, Spoken, error_in, finish
from holdfast.planes.llm.upstream import Passed, Query, RawReply, Said, UpstreamDown, is_provider_failure
from holdfast.planes.llm.usage import usage_in
from holdfast.protocols import Call, Failed, Reply, Sleep, Trip

if TYPE_CHECKING:
    from holdfast.planes.llm.formats import Route
    from holdfast.planes.llm.routing import Router

KEPT = 4_000_000
"""Bytes of a passing reply that are read for the trace."""

AT_ONCE_MS = 5.0
"""The least time that a script or a recording takes where faults may act: no model is faster, and calls that an agent
sends together meet."""


class Sent(Exception):
    """The upstream answered, but not with a completion: its reply goes on as it is."""

    def __init__(self, answered: Passed, body: bytes) -> None:
        super().__init__(f"{answered.origin} answered {answered.wire.status}")
        self.answered = answered
        self.body = body


class Talk:
    """A request of the agent's and the reply to it."""

    def __init__(
        self,
        trip: Trip,
        exchange: Exchange,
        query: Query,
        models: Mapping[str, ModelSpec],
        *,
        call: Call | None = None,
        retry: int = 0,
    ) -> None:
        self._trip = trip
        self._exchange = exchange
        self._speaker = Speaker(exchange, query, call.n if call else 0)
        self._query = query
        self._models = models
        self._call = call or Call("llm", query.model, {}, 0)
        self.retry = retry
        self._ts = trip.now()
        self._like: Any = None
        self._came: tuple[Completion, RawReply, bytes] | None = None
        """A reply that was read whole, as it came."""
        self.completion: Completion | None = None
        """What the agent got, as far as it could be read."""
        self.status: int | None = None
        self.trouble = ""
        self._passing: Passed | None = None
        self._kept = bytearray()
        """What has passed so far."""
        self._usage: Usage | None = None
        """Of a reply that passed unread."""
        self._since: float | None = None
        """When the wait for upstream's next bytes began; None while none are waited for."""
        self._billed = True
        self._faced = False
        self._told = False
        self._aside = False
        """No model is asked: a library that sends telemetry to its provider's host. That it fails decides nothing."""
        self._at = f"llm:{self._call.target}" if call is not None else ""
        """Who is asked, if a model is: what the trial could not go on without."""

    @property
    def well(self) -> bool:
        return not self.trouble

    @property
    def gone(self) -> bool:
        """Nobody waits for the answer any more."""
        return self._exchange.gone

    @property
    def over(self) -> bool:
        """The agent has got all of the answer, or left: what it asks next, it asks after this."""
        if self.gone or self._exchange.delivered:
            return True
        passed = self._passing and self._understood(self._passing.wire, bytes(self._kept))
        return bool(passed and passed.finish)

    @property
    def asked(self) -> Asked:
        """The request."""
        assert self._query.asked is not None
        return self._query.asked

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the model asked for, as far as they may have reached the agent."""
        came = self.completion
        if came is None or came.lacks or (self.trouble == "client_gone" and not self._exchange.answered):
            return ()
        return came.tool_calls

    async def pass_by(self, router: Router, route: Route | None) -> None:
        """A request that is not a completion: it goes on as it is, whatever the weather."""
        self._aside = route is None
        path = without_key(self._query.path)
        if route is not None and self._runs(route):
            self._at = f"llm:{route.kind} {path}"
        try:
            await self._pass(router)
        except UpstreamDown as down:
            await self._down(down)
        except ConnectionError:
            self.trouble = "client_gone"
        self._reached()
        if route is not None and self._asks_model(route):
            self._tell(self._event(f"{route.kind} {path}"))
        else:
            what = f"{self._query.method} {self._query.base_url or ''}{path}"
            plane = "http" if route is None else "llm"
            self._tell(replace(self._event(what), event_type="http_call", plane=plane))

    def _asks_model(self, route: Route) -> bool:
        """Whether a request that passed unread used a model, and not only asked about models or files."""
        query = self._query
        if query.method == "POST" and self.status is not None and self.status < 300:
            self._usage = usage_in(bytes(self._kept))
        return self._usage is not None or self._runs(route)

    def _runs(self, route: Route) -> bool:
        """Whether a request that passes unread has a model work."""
        runs = route.kind == "embeddings" or self._query.path.partition("?")[0].endswith("/completions")
        return runs and self._query.method == "POST"

    async def through(self, router: Router, sleep: Sleep, *, faulty: bool) -> None:
        """A completion, through the faults of the trial."""

        async def forward(_: Call) -> Reply:
            return Reply(await self._read(router))

        async def untouched(_: Call) -> Reply:
            await self._pass(router)
            return Reply(None)

        self._faced = faulty and self._trip.faces(self._call.plane, self._call.target)
        try:
            if faulty:
                reply = await self._trip.through(self._call, forward, sleep, untouched=untouched, retry=self.retry)
            else:
                reply = await untouched(self._call)
            if self._came is not None and reply.value == self._came[0]:
                await self._repeat(self._came[1], self._came[2])
            elif reply.value is not None:
                await self._say(reply.value, sleep)
        except Failed as failed:
            self._note(await self._speaker.fail(failed))
        except Sent as sent:
            await self._forward(sent)
        except HarnessError as broken:
            await self._down(broken)
        except ConnectionError:
            self.trouble = "client_gone"
        if self.trouble == "client_gone" and not self._exchange.answered:
            self._trip.undelivered(self._call.plane, self._call.target, self._call.n)
        self._reached()
        self._tell(self._event())

    def _reached(self) -> None:
        if self._at and not self.trouble:
            self._trip.reached(self._at)

    def leave(self) -> None:
        """The trial is over and the call still under way: it is told of as far as it came."""
        self.trouble = self.trouble or "client_gone"
        if self._passing is not None:
            self._settle(self._passing)
        event = self._event()
        self._tell(replace(event, phase="unfinished") if self.trouble == "client_gone" else event)

    # -- what comes from upstream ---------------------------------------------------------------
    async def _pass(self, router: Router) -> None:
        """Lets the reply pass as it comes, and reads along."""
        answered = await self._answer(router)
        if isinstance(answered, Said):
            await self._say(answered.completion)
            return
        self._passing = answered
        await self._pump(answered.wire)
        self._settle(answered)

    async def _pump(self, wire: RawReply) -> None:
        """Sends the reply on as it comes, and keeps what came of it, up to a limit."""
        kept, exchange = self._kept, self._exchange
        self.status = wire.status
        headers, whole = end_to_end(wire.headers), None if self.gone else wire.arrived()
        try:
            if whole is not None:
                kept += whole[:KEPT]
                await exchange.respond(wire.status, headers, whole, reason=wire.reason)
                return
            await exchange.start(wire.status, headers, length_of(wire.headers), reason=wire.reason)
            self._since = self._trip.now()
            async for data in wire.chunks():
                self._since = None  # now it is the client that may keep us waiting
                if len(kept) < KEPT:
                    kept += data
                await exchange.write(data)
                self._since = self._trip.now()
            self._since = None
            await finish(exchange)
        except ConnectionError:
            self.trouble = "client_gone"  # unless it had got all that it wanted
        finally:
            wire.abort()

    async def _answer(self, router: Router) -> Passed | Said:
        self._since = self._trip.now()
        answered = await router.source(self._query.provider, self._query.model).answer(self._query)
        self._billed = answered.billed
        if self._faced and not answered.billed:
            await self._exchange.wait(AT_ONCE_MS - (self._trip.now() - self._ts) * 1000)
        if not self.gone:  # else it was silent until the client left
            self._since = None
        return answered

    async def _read(self, router: Router) -> Completion:
        answered = await self._answer(router)
        if isinstance(answered, Said):
            return answered.completion
        self._since = self._trip.now() if self._since is None else self._since
        body = await answered.wire.read()
        if not self.gone:
            self._since = None
        completion = self._understood(answered.wire, body, keep=True)
        if completion is None or self._foreign(answered.wire, body):
            raise Sent(answered, body)
        self._provider_broke(completion, answered.origin)
        self._came = (completion, answered.wire, body)
        return completion

    def _understood(self, wire: RawReply, body: bytes, *, keep: bool = False) -> Completion | None:
        """The reply in neutral form; `keep`: it may be written again."""
        codec = self._query.codec
        if wire.status >= 300 or codec is None:
            return None
        kind = content_type(wire)
        if self._query.stream and (kind != "application/json" or kind == codec.stream_type):
            reader = codec.reader(keep=keep)
            reader.feed(body)
            self._like = reader.like()
            return reader.completion()
        self._like = decoded(body)
        return None if self._like is None else codec.reply(self._like)

    def _foreign(self, wire: RawReply, body: bytes) -> str:
        """What came instead of a model's reply, if one was asked."""
        if isinstance(self._like, dict) and content_type(wire) == "application/json":
            return ""  # it was read, and is an object
        whole = self.trouble != "client_gone" and len(body) < KEPT
        return foreign(wire, body, stream=self._query.stream, whole=whole) if self._at else ""

    def _settle(self, answered: Passed) -> None:
        """What passed, for the trace; a failure that is the provider's own is no doing of the agent's."""
        body = bytes(self._kept)
        completion = self._understood(answered.wire, body)
        if answered.wire.status >= 300 or self._foreign(answered.wire, body):
            self._provider_failed(answered, body)
        else:
            self._settle_passed(completion, answered.origin)

    def _settle_passed(self, completion: Completion | None, origin: str) -> None:
        self.completion = completion
        if completion is not None:
            self._provider_broke(completion, origin)
            gone = self.trouble if completion.finish is None else ""
            self.trouble = error_in(completion) or gone

    def _provider_broke(self, completion: Completion, origin: str) -> None:
        """A reply that began well and ended in an error which is the provider's own."""
        if kind := error_in(completion):
            self._broke(f"{origin} ended its reply with an error, which was not injected: {kind}")

    def _provider_failed(self, answered: Passed, body: bytes) -> None:
        status = answered.wire.status
        said = shorten(body.decode("utf-8", "replace").strip(), 200)
        odd = self._foreign(answered.wire, body)
        self.trouble = f"http_{status}" if status >= 300 else "upstream"
        if odd:
            where = answered.url or answered.origin
            self._broke(f"{where} answered {status} with {odd}, which is no reply of a model: {said}")
        elif answered.stand_in or is_provider_failure(status):
            self._broke(f"{answered.origin} answered {status}, which was not injected: {said}")

    def _broke(self, why: str) -> None:
        if self._aside:
            self._trip.note(why)
        else:
            self._trip.broke(why)

    # -- what goes to the agent -----------------------------------------------------------------
    async def _say(self, completion: Completion, sleep: Sleep | None = None) -> None:
        self.completion, self.status, self.trouble = completion, 200, error_in(completion)
        lost = left_out(self._like, completion) if isinstance(self._like, Like) else ()
        if lost:
            self._trip.note(
                f"a fault changed what {self._query.model} said, and its {', '.join(lost)} could not be kept"
            )
        self._note(await self._speaker.say(completion, self._like, sleep))

    async def _repeat(self, wire: RawReply, body: bytes) -> None:
        """A reply that was read for a fault which changed nothing: it goes on as it came."""
        self.completion = self._understood(wire, body)
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in end_to_end(wire.headers)]
        self._note(await self._speaker.send(wire.status, tuple(headers), body))
        self.trouble = self.trouble or (error_in(self.completion) if self.completion else "")

    async def _forward(self, sent: Sent) -> None:
        wire = sent.answered.wire
        self._provider_failed(sent.answered, sent.body)
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in end_to_end(wire.headers)]
        self._note(await self._speaker.send(wire.status, tuple(headers), sent.body))
        if wire.status < 300:
            self.trouble = self.trouble or "upstream"

    async def _down(self, down: HarnessError) -> None:
        """No answer, and no fault is why: the trial is an error. 400 where trying again is no use."""
        self._broke(str(down))
        status = 502 if type(down) is UpstreamDown else 400
        self.status, self.trouble = status, "upstream"
        self._note(await self._speaker.refuse(str(down), status))

    def _note(self, spoken: Spoken) -> None:
        self.status, self.trouble = spoken.status, spoken.trouble

    # -- the trace --------------------------------------------------------------------------------
    def _tell(self, event: TraceEvent) -> None:
        """Enters the call, once: an answer that comes after its trial changes nothing."""
        if not self._told:
            self._told = True
            self._trip.saw(event)

    def _event(self, what: str = "") -> TraceEvent:
        trip, call, completion = self._trip, self._call, self.completion
        usage = completion.usage if completion is not None else self._usage
        since = self._since if self.trouble == "client_gone" else None
        model = self._query.model
        return TraceEvent(
            ts=self._ts,
            event_type="llm_call",
            tool=what or call.target,
            plane=call.plane,
            n=call.n,
            retry=self.retry,
            duration_ms=(trip.now() - self._ts) * 1000,
            status=self.status,
            error_type=self.trouble,
            input=shorten(_last(self._query), TEXT_KEPT),
            output=shorten(completion.shown if completion is not None else "", TEXT_KEPT),
            digest=digest(self._query.body),
            cost=self._cost(usage, model),
            fault=trip.met_by(call.plane, call.target, call.n),
            waited_ms=0.0 if since is None else (trip.now() - since) * 1000,
        )

    def _cost(self, usage: Usage | None, model: str) -> Cost | None:
        if usage is None:
            return None
        usd = estimate(model, usage, self._models)
        return Cost(model, usage.input_tokens, usage.output_tokens, usd, self._billed, usage.cached_input)


def _last(query: Query) -> str:
    """The newest thing said to the model."""
    asked = query.asked
    if asked is None or not asked.messages:
        return ""
    last = asked.messages[-1]
    return "\n".join(result.text for result in last.results) or last.text
