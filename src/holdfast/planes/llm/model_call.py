"""One model call under way: passed on as bytes, or read, changed and written again; then entered into the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.http1.heads import end_to_end, length_of
from holdfast.http1.server import Exchange
from holdfast.model.completion import Completion, Pause
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.account import Account, usage_in
from holdfast.planes.llm.codecs.asides import Like, left_out
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.provider_reply import KEPT, ProviderReply
from holdfast.planes.llm.reply_sender import ReplySender, error_in, finish
from holdfast.planes.llm.settlements import Faulted
from holdfast.planes.llm.sources.provider_hosts import without_key
from holdfast.planes.llm.sources.source import PassedReply, Query, RawReply, UpstreamDown, WrittenReply
from holdfast.protocols.fault import Call, Failed, Reply, Sleep
from holdfast.protocols.trial import TrialContext

if TYPE_CHECKING:
    from holdfast.planes.llm.codecs.formats import ApiRoute
    from holdfast.planes.llm.sources.router import Router

AT_ONCE_MS = 5.0
"""The least time that a script or a recording takes where faults may act: no model is faster, and calls that an agent
sends together meet."""


class Sent(Exception):
    """The upstream answered, but not with a completion: its reply goes on as it is."""

    def __init__(self, answered: PassedReply, body: bytes) -> None:
        super().__init__(f"{answered.origin} answered {answered.wire.status}")
        self.answered = answered
        self.body = body


class ModelCall:
    """A request of the agent's and the reply to it."""

    __slots__ = (
        "_call",
        "_came",
        "_context",
        "_exchange",
        "_faulty",
        "_kept",
        "_passing",
        "_query",
        "_reply",
        "_understood",
        "account",
        "carries",
    )  # fmt: skip

    def __init__(
        self,
        context: TrialContext,
        exchange: Exchange,
        query: Query,
        models: Mapping[str, ModelSpec],
        *,
        call: Call | None = None,
        retry: int = 0,
        carries: tuple[Faulted, ...] = (),
        faulty: bool = False,
    ) -> None:
        self._context = context
        self.carries = carries
        """Calls whose results in it faults have changed, and that no model has read yet."""
        self._exchange = exchange
        self._query = query
        self._call = call or Call("llm", query.model, {}, 0)
        self.account = Account(context, query, models, self._call, retry)
        self._reply = ProviderReply(
            context, query, self.account, f"llm:{self._call.target}" if call is not None else ""
        )
        self._came: tuple[Completion, RawReply, bytes] | None = None
        """A reply that was read whole, as it came."""
        self._passing: PassedReply | None = None
        self._kept: bytes | bytearray = b""
        """What has passed so far."""
        self._faulty = faulty
        """Faults may act on it."""
        self._understood = False
        """The model's own reply was read, whatever became of it then."""

    @property
    def _sender(self) -> ReplySender:
        return ReplySender(self._exchange, self._query, self._call.n)

    @property
    def well(self) -> bool:
        return not self.account.trouble

    @property
    def read(self) -> bool:
        """A model has read the request, and the agent was there for the head of its reply."""
        account, passed = self.account, self._passing is not None
        well = account.status is not None and account.status < 300 and account.trouble in ("", "client_gone")
        return self._exchange.answered and (self._understood or (passed and well))

    @property
    def gone(self) -> bool:
        """Nobody waits for the answer any more."""
        return self._exchange.gone

    @property
    def over(self) -> bool:
        """The agent has got all of the answer, or left: what it asks next, it asks after this."""
        if self.gone or self._exchange.delivered:
            return True
        passed = self._passing and self._reply.understood(self._passing.wire, bytes(self._kept))
        return bool(passed and passed.finish)

    @property
    def asked(self) -> ModelRequest:
        """The request."""
        assert self._query.asked is not None
        return self._query.asked

    @property
    def given(self) -> Completion | None:
        """The model's reply, as far as it may have reached the agent."""
        came = self.account.completion
        if came is None and self._passing is not None:
            came = self._reply.understood(self._passing.wire, bytes(self._kept))
        codec = self._query.codec
        if came is None or not self._exchange.answered:
            return None
        return came if codec is None else codec.delivered(came)

    def beyond(self, given: Completion | None) -> bool:
        """Whether the agent got a reply in which there may be more than was read of it."""
        status = self.account.status
        well = self._exchange.answered and status is not None and status < 300
        return well and (given is None or len(self._kept) >= KEPT)

    async def pass_by(self, router: Router, route: ApiRoute | None) -> None:
        """A request that is not a completion: it goes on as it is, whatever the weather."""
        account = self.account
        self._reply.aside = route is None
        self._reply.codec = route.codec if route is not None else None
        path = without_key(self._query.path)
        if route is not None and self._runs(route):
            self._reply.at = f"llm:{route.kind} {path}"
        try:
            await self._pass(router)
        except UpstreamDown as down:
            await self._down(down)
        except ConnectionError:
            account.trouble = "client_gone"
        self._reached()
        if route is not None and self._asks_model(route):
            account.tell(account.event(f"{route.kind} {path}"))
        else:
            what = f"{self._query.method} {self._query.base_url or ''}{path}"
            plane = "http" if route is None else "llm"
            account.tell(replace(account.event(what), event_type="http_call", plane=plane, cost=None))

    def _asks_model(self, route: ApiRoute) -> bool:
        """Whether a request that passed unread used a model, and not only asked about models or files."""
        account = self.account
        if self._query.method == "POST" and account.status is not None and account.status < 300:
            account.usage = usage_in(bytes(self._kept))
        return account.usage is not None or self._runs(route)

    def _runs(self, route: ApiRoute) -> bool:
        """Whether a request that passes unread has a model work."""
        runs = route.kind == "embeddings" or self._query.path.partition("?")[0].endswith("/completions")
        return runs and self._query.method == "POST"

    async def through(self, router: Router, sleep: Sleep) -> None:
        """A completion, through the faults of the trial."""
        account, call = self.account, self._call
        try:
            await (self._through_faults(router, sleep) if self._faulty else self._pass(router))
        except Sent as sent:
            await self._forward(sent)
        except HarnessError as broken:
            await self._down(broken)
        except ConnectionError:
            account.trouble = "client_gone"
        if account.trouble == "client_gone" and not self._exchange.answered:
            self._context.undelivered(call.plane, call.target, call.n)
        self._reached()
        account.tell(account.event())

    async def _through_faults(self, router: Router, sleep: Sleep) -> None:
        """Raises ConnectionResetError, with nothing sent, where no client is left to meet what a fault made."""

        async def forward(_: Call) -> Reply:
            return Reply(await self._read(router))

        async def untouched(_: Call) -> Reply:
            await self._pass(router)
            return Reply(None)

        async def wait(ms: float) -> None:
            if self.gone or self._exchange.connection.left:
                self._context.undelivered(call.plane, call.target, call.n, waits=True)
            await sleep(ms)

        call = self._call
        try:
            reply = await self._context.through(call, forward, wait, untouched=untouched, retry=self.account.retry)
        except Failed as failed:
            self._exchange.ensure_there()
            self.account.note(await self._sender.fail(failed))
            return
        if reply.value is None:
            return
        self.account.completion = reply.value  # it was billed, whoever gets it
        self._exchange.ensure_there()
        if self._came is not None and reply.value == self._came[0]:
            await self._repeat(self._came[1], self._came[2])
        else:
            await self._say(reply.value, sleep)

    def _reached(self) -> None:
        if self._reply.at and not self.account.trouble:
            self._context.reached(self._reply.at)

    def leave(self) -> None:
        """The trial is over and the call still under way: it is told of as far as it came."""
        account = self.account
        account.trouble = account.trouble or "client_gone"
        if self._passing is not None:
            self._reply.settle(self._passing, bytes(self._kept))
        event = account.event()
        account.tell(replace(event, phase="unfinished") if account.trouble == "client_gone" else event)

    # -- what comes from upstream ---------------------------------------------------------------
    async def _pass(self, router: Router) -> None:
        """Lets the reply pass as it comes, and reads along."""
        answered = await self._answer(router)
        if isinstance(answered, WrittenReply):
            self._understood = not error_in(answered.completion)
            if self.carries:
                await self._say(await self._begun(answered.completion), self._exchange.wait)
            else:
                await self._say(answered.completion)
            return
        self._passing = answered
        await self._pump(answered.wire)
        self._reply.settle(answered, bytes(self._kept))

    async def _pump(self, wire: RawReply) -> None:
        """Sends the reply on as it comes, and keeps what came of it, up to a limit."""
        self.account.status = wire.status
        whole = None if self._exchange.connection.gone else wire.arrived()
        try:
            if whole is None:
                await self._stream(wire)
            else:
                self._kept = whole[:KEPT]
                self._ensure_there()
                await self._exchange.respond(wire.status, end_to_end(wire.headers), whole, reason=wire.reason)
        except ConnectionError:
            self.account.trouble = "client_gone"  # unless it had got all that it wanted
        finally:
            wire.abort()

    async def _stream(self, wire: RawReply) -> None:
        self._kept = kept = bytearray()
        exchange, account, chunks = self._exchange, self.account, wire.chunks()
        if wire.status >= 300:  # its client may leave at the status, and what it says is to be told
            kept += await anext(chunks, b"")
        self._ensure_there()
        await exchange.start(wire.status, end_to_end(wire.headers), length_of(wire.headers), reason=wire.reason)
        if kept:
            await exchange.write(bytes(kept))
        account.waits()
        async for data in chunks:
            account.since = None  # now it is the client that may keep us waiting
            if len(kept) < KEPT:
                kept += data
            await exchange.write(data)
            account.waits()
        account.since = None
        await finish(exchange)

    async def _begun(self, completion: Completion) -> Completion:
        """The rest of a reply, once its first word is due: its head is not to go out before."""
        first = next((n for n, delta in enumerate(completion.deltas) if not isinstance(delta, Pause)), 0)
        await self._exchange.wait(sum(delta.ms for delta in completion.deltas[:first] if isinstance(delta, Pause)))
        self._exchange.ensure_there()
        return replace(completion, deltas=completion.deltas[first:])

    def _ensure_there(self) -> None:
        """A changed result that the model has read is met only by an agent that gets the model's reply."""
        if self.carries:
            self._exchange.ensure_there()

    async def _answer(self, router: Router) -> PassedReply | WrittenReply:
        account = self.account
        account.waits()
        answered = await router.source(self._query.provider, self._query.model).answer(self._query)
        account.billed, account.script = answered.billed, answered.script
        if self._faulty and not answered.billed:
            await self._exchange.wait(AT_ONCE_MS - account.age_ms)
        if not self._exchange.connection.gone:  # else it was silent until the client left
            account.since = None
        return answered

    async def _read(self, router: Router) -> Completion:
        answered = await self._answer(router)
        if isinstance(answered, WrittenReply):
            self._understood = not error_in(answered.completion)
            return answered.completion
        account, reply = self.account, self._reply
        if account.since is None:
            account.waits()
        body = await answered.wire.read()
        if not self.gone:
            account.since = None
        completion = reply.understood(answered.wire, body, keep=True)
        if completion is None or reply.foreign(answered.wire, body):
            raise Sent(answered, body)
        self._understood = not reply.ended(completion, answered.origin)
        self._came = (completion, answered.wire, body)
        return completion

    # -- what goes to the agent -----------------------------------------------------------------
    async def _say(self, completion: Completion, sleep: Sleep | None = None) -> None:
        account, like = self.account, self._reply.like
        account.completion, account.status, account.trouble = completion, 200, error_in(completion)
        lost = left_out(like, completion) if isinstance(like, Like) else ()
        if lost:
            self._context.note(
                f"a fault changed what {self._query.model} said, and its {', '.join(lost)} could not be kept"
            )
        account.note(await self._sender.say(completion, like, sleep))

    async def _repeat(self, wire: RawReply, body: bytes) -> None:
        """A reply that was read for a fault which changed nothing: it goes on as it came."""
        account = self.account
        account.completion = self._reply.understood(wire, body)
        await self._send(wire, body)
        account.trouble = account.trouble or (error_in(account.completion) if account.completion else "")

    async def _forward(self, sent: Sent) -> None:
        wire = sent.answered.wire
        self._reply.failed(sent.answered, sent.body)
        await self._send(wire, sent.body)
        if wire.status < 300:
            self.account.trouble = self.account.trouble or "upstream"

    async def _send(self, wire: RawReply, body: bytes) -> None:
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in end_to_end(wire.headers)]
        self.account.note(await self._sender.send(wire.status, tuple(headers), body))

    async def _down(self, down: HarnessError) -> None:
        """No answer, and no fault is why: the trial is an error. 400 where trying again is no use."""
        self._reply.broke(str(down))
        status = 502 if type(down) is UpstreamDown else 400
        self.account.status, self.account.trouble = status, "upstream"
        self.account.note(await self._sender.refuse(str(down), status))
