"""Tool results in requests to the model: here faults act on the tools of a launched agent, by tool name.

The agent sends the conversation again with every request. A fault acts once on each result, which then stays the same.
A result that no model of this trial is known to have requested passes unchanged; if it waits for the model, it may
still be a call.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.codec import digest
from holdfast.model.completion import ToolCall
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.describe import digest_arguments, find_cut_canaries
from holdfast.planes.llm.codecs.request import ModelRequest, ToolDeclaration, ToolResult
from holdfast.planes.llm.known_results import (
    UNREQUESTED,
    ChangedCall,
    KnownResult,
    KnownResults,
    OpenToolCall,
    ResultPosition,
    digest_conversation,
    locate_results,
    mark_first_and_last,
    match_results,
    read_arguments,
)
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call, Failed, ReceivedReply, Reply
from holdfast.protocols.trial import TrialContext

UNMATCHED_KEPT = 1_000
"""Limit on results without a known call: more than any agent has. The oldest are reported early."""
PLANE = "tool_result"
_NO_TIME = "a fault cannot delay a tool result in model traffic: the tool has already run"
OPEN_KEPT = 1_000
"""Limit on calls without a result: more than any agent has in progress."""


class ToolResults:
    """The tool results of one trial."""

    def __init__(self, context: TrialContext, other_tools: Callable[[], Container[str]], *, faulty: bool) -> None:
        self._context = context
        self._other_tools = other_tools
        """Names of tools that another plane handles: their results pass here."""
        self._faulty = faulty
        self._decisions = KnownResults()
        self._unmatched: dict[tuple[bytes, str, str], tuple[str, str, float]] = {}
        """Results without a known call: the tool, arguments and time of the call that may have been made. They are
        reported at the end of the trial, because a later reply may resolve them."""
        self._has_unread_reply = False
        """Whether a reply passed unread: any result that the model has not read may belong to a call in it."""
        self._open: deque[OpenToolCall] = deque()
        self._calls_by_id: dict[str, ToolCall] = {}
        """Calls that a model requested, by id: a request may answer a call without repeating it."""
        self._unread: dict[ChangedCall, None] = {}
        """Calls whose results faults changed and that no model has read yet."""

    def record_calls(self, calls: tuple[ToolCall, ...], request: ModelRequest, *, certain: bool = True) -> None:
        """Record the calls in the model's reply to a request; without `certain` they may only look like calls."""
        if not calls:
            return
        before, (first, last) = digest_conversation(request.messages), mark_first_and_last(request.messages)
        for call in calls:
            self._open.append(OpenToolCall(call, self._context.sink.now(), before, first, last, certain))
            self._calls_by_id.pop(call.id, None)
            self._calls_by_id[call.id] = call
        while len(self._open) > OPEN_KEPT:
            self._report_open(self._open.popleft())
        while len(self._calls_by_id) > OPEN_KEPT:
            del self._calls_by_id[next(iter(self._calls_by_id))]

    def record_fetched(self, calls: tuple[ToolCall, ...]) -> None:
        """Record the calls in an earlier request's reply, which the agent may fetch several times."""
        self.record_calls(tuple([call for call in calls if self._calls_by_id.get(call.id) != call]), ModelRequest(""))

    def record_unread_reply(self) -> None:
        """Record that a reply passed which could not be read: its calls are unknown."""
        self._has_unread_reply = True

    async def settle(
        self, request: ModelRequest, *, is_retry: bool = False, record_late_calls: Callable[[], None] | None = None
    ) -> dict[str, KnownResult]:
        """Return the results that differ from the tools' own, by key. `is_retry`: the request repeats a failed one.

        `record_late_calls` records the calls of replies that are still being sent; it is called if the call of a result
        is not known.
        """
        changed: dict[str, KnownResult] = {}
        positions = locate_results(request.messages)
        if not positions:
            return changed
        matches = self._match_results(positions, is_retry=is_retry)
        # An agent may send its next request as soon as it has read the last event of a reply, before Holdfast has seen
        # the end of that reply. Its calls are then recorded now, and the results are matched once more.
        if record_late_calls is not None and any(decision is None and call is None for _, decision, call in matches):
            record_late_calls()
            matches = self._match_results(positions, is_retry=is_retry)
        for _, _, call in matches:
            if call is not None:
                self._open.remove(call)
        for position, decision, call in matches:
            if decision is None and call is None:
                self._add_unmatched(position, request.tools)
            decision = await self._settle_result(position, decision, call)
            if decision.text is not None:
                changed[position.result.key] = decision
        return changed

    def list_unread(self, changed: Iterable[KnownResult]) -> tuple[ChangedCall, ...]:
        """Return the calls among them whose results no model has read yet."""
        return tuple([decision.call for decision in changed if decision.call in self._unread])

    def mark_read(self, calls: Iterable[ChangedCall]) -> None:
        """Record that a model has answered a request with these results."""
        for call in calls:
            self._unread.pop(call, None)

    def _match_results(
        self, positions: list[ResultPosition], *, is_retry: bool
    ) -> list[tuple[ResultPosition, KnownResult | None, OpenToolCall | None]]:
        """Return each result with its earlier decision, or with the call that it answers."""
        # Two rounds: first only by evidence inside the request. If a result that waits for the model is then known to
        # be of this trial, so is the whole conversation, and weaker marks may be trusted for its other results.
        positions = [self._add_call_details(position) for position in positions]
        known = self._decisions.recall(positions)
        calls = match_results(positions, known, self._open, is_retry=is_retry)
        is_call = [n in calls or (decision is not None and decision.is_requested) for n, decision in enumerate(known)]
        if any(position.last and requested for position, requested in zip(positions, is_call, strict=True)):
            known = self._decisions.recall(positions, is_own=True)
        return [
            (position, decision, calls.get(n))
            for n, (position, decision) in enumerate(zip(positions, known, strict=True))
        ]

    async def _settle_result(
        self, position: ResultPosition, known: KnownResult | None, call: OpenToolCall | None
    ) -> KnownResult:
        if call is None and known is not None:
            return known
        if call is not None:  # it may have looked unmatched before
            self._unmatched.pop((position.before, position.result.key, position.result.name), None)
        decision = UNREQUESTED if call is None else await self._apply_to_result(position.result, call)
        self._decisions.keep(position, decision)
        return decision

    def _add_call_details(self, position: ResultPosition) -> ResultPosition:
        """Return the result with its tool and arguments, if only an earlier reply named them."""
        call = self._calls_by_id.get(position.result.key) if position.lacks_call else None
        if call is None:
            return position
        name = position.result.name or call.name
        return replace(position, result=replace(position.result, name=name, arguments=call.arguments))

    def close(self) -> None:
        """End the trial, and report the calls that the model requested but Holdfast did not see."""
        while self._open:
            self._report_open(self._open.popleft())
        while self._unmatched:
            self._report_oldest_unmatched()
        self._mark_undelivered(len(self._unread))

    def _mark_undelivered(self, number: int) -> None:
        """Mark this many changed results, the oldest, as not met."""
        for name, n in list(self._unread)[: max(0, number)]:
            del self._unread[name, n]
            self._context.injector.mark_undelivered(PLANE, name, n, "no model read the result")

    def _report_open(self, opened: OpenToolCall) -> None:
        call = opened.call
        if opened.certain and call.name not in self._other_tools():
            self._context.sink.add(_build_event(call.name, call.arguments, opened.ts, phase="declared"))

    def _add_unmatched(self, position: ResultPosition, tools: Sequence[ToolDeclaration]) -> None:
        """Record a result without a known call. A result before a new prompt belongs to an example or an old
        conversation; one that names no tool may belong to any of the request's `tools`."""
        if position.is_duplicate or not (position.last or (position.is_pending and self._has_unread_reply)):
            return
        names = [position.result.name] if position.result.name else [tool.name for tool in tools] or [""]
        for name in names:
            call = (name, position.result.arguments, self._context.sink.now())
            self._unmatched[position.before, position.result.key, name] = call
            if len(self._unmatched) > UNMATCHED_KEPT:
                self._report_oldest_unmatched()

    def _report_oldest_unmatched(self) -> None:
        name, arguments, ts = self._unmatched.pop(next(iter(self._unmatched)))
        if name not in self._other_tools():
            what = (
                f"a result of {name or 'a tool'} was sent to a model, but no reply that Holdfast read requests its call"
            )
            self._context.sink.note(f"{what}: the call may not belong to this trial")
            self._context.sink.add(_build_event(name, arguments, ts, phase="declared"))

    async def _apply_to_result(self, result: ToolResult, call: OpenToolCall) -> KnownResult:
        text_marks = (call.first, call.last)
        if result.name in self._other_tools():
            return KnownResult(text_marks=text_marks)
        n = self._context.injector.count(PLANE, result.name)
        decision = await self._apply_faults(result, n, call.ts) if self._faulty else KnownResult()
        fault = self._context.injector.join_modes_met(PLANE, result.name, n)
        if fault and decision.text is not None:
            decision = replace(decision, call=(result.name, n))
            self._unread[result.name, n] = None
            self._mark_undelivered(len(self._unread) - OPEN_KEPT)
        text = result.text if decision.text is None else decision.text
        self._context.sink.add(
            _build_event(
                result.name,
                result.arguments,
                call.ts,
                n=n,
                duration_ms=(self._context.sink.now() - call.ts) * 1000,
                output=shorten(text, TEXT_KEPT),
                reply=write_reply(text) if len(text) > TEXT_KEPT else "",
                error_type="tool_error" if decision.failed or result.failed else "",
                fault=fault,
            )
        )
        return replace(decision, text_marks=text_marks)

    async def _apply_faults(self, result: ToolResult, n: int, since: float) -> KnownResult:
        async def forward(_: Call) -> Reply:
            return Reply(_decode_text(result.text))

        async def wait(ms: float) -> None:
            if not self._context.injector.is_replay:
                raise HarnessError(_NO_TIME, code="fault-impossible")
            await asyncio.sleep(ms / 1000 - (self._context.sink.now() - since))  # the tool accepted some of it

        call = Call(PLANE, result.name, read_arguments(result.arguments), n)
        try:
            value = (await self._context.injector.inject(call, forward, wait, receives=_render_for_model)).value
        except Failed as failed:
            return KnownResult(f"Error: {failed}", failed=True)
        text = _to_text(value)
        # The fault may have changed the value in a way that the text does not show, such as the order of keys. Then the
        # model reads the same, and the fault was not met.
        if value != _decode_text(result.text) and text != result.text:
            return KnownResult(text)
        self._context.injector.mark_undelivered(PLANE, result.name, n, "the model reads the same text")
        return KnownResult()


def _build_event(name: str, arguments: str, ts: float, **rest: Any) -> TraceEvent:
    return TraceEvent(
        ts=ts,
        event_type="tool_call",
        tool=name,
        plane=PLANE,
        input=shorten(arguments, TEXT_KEPT),
        canaries=find_cut_canaries(arguments),
        write=True,
        digest=digest(f"{name}:{digest_arguments(read_arguments(arguments))}".encode("utf-8", "surrogatepass")),
        **rest,
    )


def _decode_text(text: str) -> Any:
    """Return data if the text is a JSON object or list; otherwise the text."""
    if text[:1] not in ("{", "["):
        return text
    try:  # strictly: NaN differs from itself, so a value with it would look changed
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _render_for_model(reply: Reply) -> ReceivedReply:
    text = _to_text(reply.value)
    return ReceivedReply(text, text)


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
