"""Tool results on their way to the model: where the tools of a launched agent are met, by name.

A conversation is sent again with every request. Each result is met once, and is the same ever after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.codec import digest
from holdfast.model.completion import ToolCall
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.describe import arguments_digest, cut_off, shorten
from holdfast.planes.llm.asked import Asked, ToolResult
from holdfast.planes.llm.placing import Placed, placed, said
from holdfast.protocols import Call, Failed, Reply, Trip

PLANE = "tool_result"
OPEN_KEPT = 10_000
"""Calls without a result that are kept: more than any trace has room for."""

SURE = 3
"""How many of its marks tell a result that the model has not read yet from another call with the same result."""


class Settled(Struct, frozen=True):
    """A result as the model is to read it; None: as the tool gave it."""

    text: str | None = None
    failed: bool = False


class _Open(Struct, frozen=True):
    """A call that the model asked for and whose result has not come."""

    call: ToolCall
    ts: float
    before: bytes
    """As `Placed.before`."""

    def answered_by(self, result: ToolResult) -> bool:
        """By its id, which a conversation numbers if it comes again; a call without one by its name and arguments."""
        id, name = self.call.id, self.call.name
        if id:
            return result.key == id or result.key.startswith(f"{id}#")
        return result.name == name and _arguments(result.arguments) == _arguments(self.call.arguments)


class Results:
    """The tool results of one trial."""

    def __init__(self, trip: Trip, elsewhere: Callable[[], Container[str]], *, faulty: bool) -> None:
        self._trip = trip
        self._elsewhere = elsewhere
        """Names of tools that another plane meets: here they pass."""
        self._faulty = faulty
        self._settled: dict[tuple[str | bytes, ...], Settled] = {}
        """By all that a result may be known by later: see `_marks`."""
        self._open: list[_Open] = []
        self._named: dict[str, ToolCall] = {}
        """Every call that was asked for: a request may answer one that it does not repeat."""

    def declared(self, calls: tuple[ToolCall, ...], asked: Asked) -> None:
        """The model has answered a request with these calls."""
        before = said(asked.messages) if calls else b""
        for call in calls[: OPEN_KEPT - len(self._open)]:
            self._open.append(_Open(call, self._trip.now(), before))
            self._named[call.id] = call

    async def settle(self, asked: Asked, *, again: bool = False) -> dict[str, Settled]:
        """The results that differ from what the tools gave, by key. `again`: the same request, after it failed."""
        changed: dict[str, Settled] = {}
        if not any(message.results for message in asked.messages):
            return changed
        for at in placed(asked.messages):
            result = self._whole(at.result)
            settled = self._known(at, result, again=again)
            if settled is None:
                settled = await self._meet(result, self._asked_for(at, result))
                self._settled |= dict.fromkeys(_marks(at, result), settled)
            if settled.text is not None:
                changed[result.key] = settled
        return changed

    def _known(self, at: Placed, result: ToolResult, *, again: bool) -> Settled | None:
        """What was settled for a result that came before, even if the agent has shortened it or what went before it.

        Of two conversations that look the same, each has asked for a call of its own.
        """
        marks = _marks(at, result)
        usable = marks[:SURE] if at.fresh else marks
        known = next((self._settled[mark] for mark in usable if mark in self._settled), None)
        if known is None or again or not at.fresh:
            return known
        return None if any(one.answered_by(result) for one in self._open) else known

    def _whole(self, result: ToolResult) -> ToolResult:
        """The result with the name of its tool, where only an earlier reply told it."""
        call = self._named.get(result.key)
        if result.name or call is None:
            return result
        return replace(result, name=call.name, arguments=call.arguments)

    def close(self) -> None:
        """The trial is over: what the model asked for and nobody was seen doing is told of."""
        for one in self._open:
            if one.call.name not in self._elsewhere():
                self._trip.saw(_event(one.call.name, one.call.arguments, one.ts, phase="declared"))

    async def _meet(self, result: ToolResult, declared: _Open | None) -> Settled:
        if result.name in self._elsewhere():
            return Settled()
        n = self._trip.count(PLANE, result.name)
        settled = await self._through(result, n) if self._faulty else Settled()
        ts = declared.ts if declared else self._trip.now()
        self._trip.saw(
            _event(
                result.name,
                result.arguments,
                ts,
                n=n,
                duration_ms=(self._trip.now() - ts) * 1000,
                output=shorten(result.text if settled.text is None else settled.text, TEXT_KEPT),
                error_type="tool_error" if settled.failed or result.failed else "",
                fault=self._trip.met_by(PLANE, result.name, n),
            )
        )
        return settled

    def _asked_for(self, at: Placed, result: ToolResult) -> _Open | None:
        """The call that a result answers: by its id, else (not every client sends that back) the oldest of its name."""
        fitting = [one for one in self._open if one.answered_by(result) or one.call.name == result.name]
        if not fitting:
            return None
        best = min(fitting, key=lambda one: (not one.answered_by(result), one.before != at.before))
        self._open.remove(best)
        return best

    async def _through(self, result: ToolResult, n: int) -> Settled:
        async def forward(_: Call) -> Reply:
            return Reply(_decoded(result.text))

        call = Call(PLANE, result.name, _arguments(result.arguments), n)
        try:
            value = (await self._trip.through(call, forward, _no_wait)).value
        except Failed as failed:
            return Settled(f"Error: {failed}", failed=True)
        text = value if isinstance(value, str) else _encoded(value)
        return Settled() if value == _decoded(result.text) or text == result.text else Settled(text)


def _marks(at: Placed, result: ToolResult) -> tuple[tuple[str | bytes, ...], ...]:
    """What a result is known by, the surest first: place and text, place, key; its text, the call alone."""
    call = (result.name, result.arguments)
    text = digest(result.text.encode("utf-8", "surrogatepass"), 16)
    place = (at.before, result.key, *call)
    return (*place, text), place, ("key", result.key, *call), ("text", text, *call), call


async def _no_wait(ms: float) -> None:
    raise HarnessError("a result in model traffic has no time of its own: a fault cannot wait there")


def _event(name: str, arguments: str, ts: float, **rest: Any) -> TraceEvent:
    return TraceEvent(
        ts=ts,
        event_type="tool_call",
        tool=name,
        plane=PLANE,
        input=shorten(arguments, TEXT_KEPT),
        canaries=cut_off(arguments),
        write=True,
        digest=digest(f"{name}:{arguments_digest(_arguments(arguments))}".encode()),
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


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {"arguments": text}
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}
