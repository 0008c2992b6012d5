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
from holdfast.protocols import Call, Failed, Reply, Trip

PLANE = "tool_result"


class Settled(Struct, frozen=True):
    """A result as the model is to read it; None: as the tool gave it."""

    text: str | None = None
    failed: bool = False


class Results:
    """The tool results of one trial."""

    def __init__(self, trip: Trip, elsewhere: Callable[[], Container[str]], *, faulty: bool) -> None:
        self._trip = trip
        self._elsewhere = elsewhere
        """Names of tools that another plane meets: here they pass."""
        self._faulty = faulty
        self._settled: dict[tuple[str, str], Settled] = {}
        self._declared: dict[str, tuple[ToolCall, float]] = {}
        self._named: dict[str, ToolCall] = {}
        """Every call that was asked for: a request may answer one that it does not repeat."""

    def declared(self, calls: tuple[ToolCall, ...]) -> None:
        """The model has asked for these calls."""
        for call in calls:
            self._declared[call.id or call.name] = (call, self._trip.now())
            self._named[call.id] = call

    async def settle(self, asked: Asked) -> dict[str, Settled]:
        """The results that differ from what the tools gave, by key."""
        changed = {}
        for result in map(self._whole, asked.results):
            known = (result.key, digest(result.text.encode("utf-8", "surrogatepass"), 16))
            if known not in self._settled:
                self._settled[known] = await self._meet(result)
            if self._settled[known].text is not None:
                changed[result.key] = self._settled[known]
        return changed

    def _whole(self, result: ToolResult) -> ToolResult:
        """The result with the name of its tool, where only an earlier reply told it."""
        call = self._named.get(result.key)
        if result.name or call is None:
            return result
        return replace(result, name=call.name, arguments=call.arguments)

    def close(self) -> None:
        """The trial is over: what the model asked for and nobody was seen doing is told of."""
        for call, ts in self._declared.values():
            if call.name not in self._elsewhere():
                self._trip.saw(_event(call.name, call.arguments, ts, phase="declared"))

    async def _meet(self, result: ToolResult) -> Settled:
        declared = self._asked_for(result)
        if result.name in self._elsewhere():
            return Settled()
        n = self._trip.count(PLANE, result.name)
        settled = await self._through(result, n) if self._faulty else Settled()
        ts = declared[1] if declared else self._trip.now()
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

    def _asked_for(self, result: ToolResult) -> tuple[ToolCall, float] | None:
        """The call that a result answers: by its id, else (not every client sends that back) the oldest of its name."""
        keys = [key for key, (call, _) in self._declared.items() if result.key == key or result.name == call.name]
        key = result.key if result.key in keys else next(iter(keys), None)
        return None if key is None else self._declared.pop(key)

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
