"""Tool results on their way to the model: where the tools of a launched agent are met, by name.

A conversation is sent again with every request. Each result is met once, and is the same ever after. One that no model
of this trial is known to have asked for passes untouched; if it waits for the model, it may be a call all the same.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.codec import digest
from holdfast.model.completion import ToolCall
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.describe import arguments_digest, cut_off
from holdfast.planes.llm.codecs.request import ModelRequest, ToolDeclared, ToolResult
from holdfast.planes.llm.known_results import (
    PASSES,
    ChangedCall,
    KnownResult,
    KnownResults,
    OpenToolCall,
    ResultPosition,
    answers,
    by_name,
    first_and_last,
    placed,
    said,
)
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call, Failed, Received, Reply
from holdfast.protocols.trial import TrialContext

KEPT = 1_000
"""More than any agent has; the oldest are told of early."""
PLANE = "tool_result"
_NO_TIME = "a result in model traffic has no time of its own: a fault cannot wait there"
OPEN_KEPT = 1_000
"""Calls without a result that are kept: more than any agent has under way."""


def _nothing() -> None:
    """No call is late."""


class ToolResults:
    """The tool results of one trial."""

    def __init__(self, context: TrialContext, elsewhere: Callable[[], Container[str]], *, faulty: bool) -> None:
        self._context = context
        self._elsewhere = elsewhere
        """Names of tools that another plane meets: here they pass."""
        self._faulty = faulty
        self._settled = KnownResults()
        self._unmatched = UnmatchedResults(self._report_unmatched)
        self._open: deque[OpenToolCall] = deque()
        self._named: dict[str, ToolCall] = {}
        """Calls that were asked for, by id: a request may answer one that it does not repeat."""
        self._unread: dict[ChangedCall, None] = {}
        """Whose results faults changed, and no model has read yet."""

    def declared(self, calls: tuple[ToolCall, ...], asked: ModelRequest, *, sure: bool = True) -> None:
        """The model has answered a request with these calls; not `sure`: with what may be meant as calls."""
        if not calls:
            return
        before, (first, last) = said(asked.messages), first_and_last(asked.messages)
        for call in calls:
            self._open.append(OpenToolCall(call, self._context.sink.now(), before, first, last, sure))
            self._named.pop(call.id, None)
            self._named[call.id] = call
        while len(self._open) > OPEN_KEPT:
            self._tell_of(self._open.popleft())
        while len(self._named) > OPEN_KEPT:
            del self._named[next(iter(self._named))]

    def fetched(self, calls: tuple[ToolCall, ...]) -> None:
        """An earlier request's reply, which the agent may look at often, has these calls."""
        self.declared(tuple([call for call in calls if self._named.get(call.id) != call]), ModelRequest(""))

    def missed(self) -> None:
        """A reply passed that could not be read: what it asked for is not known."""
        self._unmatched.missed = True

    async def settle(
        self, asked: ModelRequest, *, again: bool = False, late: Callable[[], None] = _nothing
    ) -> dict[str, KnownResult]:
        """The results that differ from what the tools gave, by key. `again`: the same request, after it failed.

        `late` declares what replies that are still under way have asked for, should a result want a call.
        """
        changed: dict[str, KnownResult] = {}
        found = placed(asked.messages)
        if not found:
            return changed
        met = self._matched(found, again=again)
        if any(settled is None and call is None for _, settled, call in met):
            late()
            met = self._matched(found, again=again)
        for _, _, call in met:
            if call is not None:
                self._open.remove(call)
        for at, settled, call in met:
            if settled is None and call is None:
                self._unmatched.take(at, asked.tools, self._context.sink.now())
            settled = await self._settle(at, settled, call)
            if settled.text is not None:
                changed[at.result.key] = settled
        return changed

    def unread(self, changed: Iterable[KnownResult]) -> tuple[ChangedCall, ...]:
        """Those of them that no model has read yet."""
        return tuple([one.call for one in changed if one.call in self._unread])

    def read(self, calls: Iterable[ChangedCall]) -> None:
        """A model has answered a request with these results in it."""
        for call in calls:
            self._unread.pop(call, None)

    def _matched(
        self, found: list[ResultPosition], *, again: bool
    ) -> list[tuple[ResultPosition, KnownResult | None, OpenToolCall | None]]:
        """Each result with what was settled for it before, or with the call that it answers."""
        whole = [self._whole(at) for at in found]
        known = self._settled.recall(whole)
        calls = answers(whole, known, self._open, again=again)
        is_call = [n in calls or (one is not None and one.asked_for) for n, one in enumerate(known)]
        if any(at.last and of_call for at, of_call in zip(whole, is_call, strict=True)):
            known = self._settled.recall(whole, own=True)
        return [(at, settled, calls.get(n)) for n, (at, settled) in enumerate(zip(whole, known, strict=True))]

    async def _settle(self, at: ResultPosition, known: KnownResult | None, call: OpenToolCall | None) -> KnownResult:
        if call is None and known is not None:
            return known
        if call is not None:
            self._unmatched.drop(at)
        settled = PASSES if call is None else await self._meet(at.result, call)
        self._settled.keep(at, settled)
        return settled

    def _whole(self, at: ResultPosition) -> ResultPosition:
        """The result with its tool and arguments, where only an earlier reply told them."""
        call = self._named.get(at.result.key) if at.alone else None
        if call is None:
            return at
        name = at.result.name or call.name
        return replace(at, result=replace(at.result, name=name, arguments=call.arguments))

    def close(self) -> None:
        """The trial is over: what the model asked for and nobody was seen doing is told of."""
        while self._open:
            self._tell_of(self._open.popleft())
        self._unmatched.close()
        self._lose(len(self._unread))

    def _lose(self, number: int) -> None:
        """So many changed results, the oldest, were met by nobody."""
        for name, n in list(self._unread)[: max(0, number)]:
            del self._unread[name, n]
            self._context.injector.mark_undelivered(PLANE, name, n, "no model read it")

    def _tell_of(self, one: OpenToolCall) -> None:
        if one.sure and one.call.name not in self._elsewhere():
            self._context.sink.add(_event(one.call.name, one.call.arguments, one.ts, phase="declared"))

    def _report_unmatched(self, one: UnmatchedResult) -> None:
        if one.name not in self._elsewhere():
            what = f"a result of {one.name or 'a tool'} went to a model, and no reply that was read had asked for it"
            self._context.sink.note(f"{what}: whether it is a call of this trial is not known")
            self._context.sink.add(_event(one.name, one.arguments, one.ts, phase="declared"))

    async def _meet(self, result: ToolResult, call: OpenToolCall) -> KnownResult:
        heard = (call.first, call.last)
        if result.name in self._elsewhere():
            return KnownResult(heard=heard)
        n = self._context.injector.count(PLANE, result.name)
        settled = await self._through(result, n, call.ts) if self._faulty else KnownResult()
        ts, fault = call.ts, self._context.injector.modes_met(PLANE, result.name, n)
        if fault and settled.text is not None:
            settled = replace(settled, call=(result.name, n))
            self._unread[result.name, n] = None
            self._lose(len(self._unread) - OPEN_KEPT)
        whole = result.text if settled.text is None else settled.text
        self._context.sink.add(
            _event(
                result.name,
                result.arguments,
                ts,
                n=n,
                duration_ms=(self._context.sink.now() - ts) * 1000,
                output=shorten(whole, TEXT_KEPT),
                reply=write_reply(whole) if len(whole) > TEXT_KEPT else "",
                error_type="tool_error" if settled.failed or result.failed else "",
                fault=fault,
            )
        )
        return replace(settled, heard=heard)

    async def _through(self, result: ToolResult, n: int, since: float) -> KnownResult:
        async def forward(_: Call) -> Reply:
            return Reply(_decoded(result.text))

        async def wait(ms: float) -> None:
            if not self._context.injector.is_replay:
                raise HarnessError(_NO_TIME, code="fault-impossible")
            await asyncio.sleep(ms / 1000 - (self._context.sink.now() - since))  # the tool took some of it

        call = Call(PLANE, result.name, by_name(result.arguments), n)
        try:
            value = (await self._context.injector.inject(call, forward, wait, receives=_read_by_model)).value
        except Failed as failed:
            return KnownResult(f"Error: {failed}", failed=True)
        text = _as_text(value)
        if value != _decoded(result.text) and text != result.text:
            return KnownResult(text)
        self._context.injector.mark_undelivered(PLANE, result.name, n, "the model reads the same text")
        return KnownResult()


def _event(name: str, arguments: str, ts: float, **rest: Any) -> TraceEvent:
    return TraceEvent(
        ts=ts,
        event_type="tool_call",
        tool=name,
        plane=PLANE,
        input=shorten(arguments, TEXT_KEPT),
        canaries=cut_off(arguments),
        write=True,
        digest=digest(f"{name}:{arguments_digest(by_name(arguments))}".encode("utf-8", "surrogatepass")),
        **rest,
    )


def _decoded(text: str) -> Any:
    """Data where the text is a JSON object or list; else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _read_by_model(reply: Reply) -> Received:
    text = _as_text(reply.value)
    return Received(text, text)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


class UnmatchedResult(Struct, frozen=True):
    """A call that may have been made."""

    name: str
    arguments: str
    ts: float


class UnmatchedResults:
    """Those of one trial. They are told of at its end: a reply that is known later may end them."""

    def __init__(self, tell: Callable[[UnmatchedResult], None]) -> None:
        self._tell = tell
        self._kept: dict[tuple[bytes, str, str], UnmatchedResult] = {}
        self.missed = False
        """A reply passed unread: any result that the model has not read may be of a call in it."""

    def take(self, at: ResultPosition, tools: Sequence[ToolDeclared], ts: float) -> None:
        """A result that answers no known call. One before a new prompt is an example's, or of a conversation that was
        kept; one that names no tool may be of any of the request's `tools`."""
        if at.again or not (at.last or (at.fresh and self.missed)):
            return
        names = [at.result.name] if at.result.name else [tool.name for tool in tools] or [""]
        for name in names:
            self._kept[at.before, at.result.key, name] = UnmatchedResult(name, at.result.arguments, ts)
            if len(self._kept) > KEPT:
                self._tell(self._kept.pop(next(iter(self._kept))))

    def drop(self, at: ResultPosition) -> None:
        """The result is known to answer a call."""
        self._kept.pop((at.before, at.result.key, at.result.name), None)

    def close(self) -> None:
        """The trial is over."""
        for unmatched in self._kept.values():
            self._tell(unmatched)
        self._kept.clear()
