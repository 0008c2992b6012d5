"""What a trial remembers of its earlier model calls: which of them failed, and what they asked for.

The libraries of OpenAI and Anthropic repeat by themselves and count aloud; Google's repeats a lost connection once and
says nothing. A request that comes again from anything else is the agent's own doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult

Get: TypeAlias = Callable[[str], str | None]
"""A request's header by its name."""

KEPT = 10_000
"""Failed requests that are remembered."""

_COUNT = "x-stainless-retry-count"
"""A header by which the OpenAI and Anthropic libraries say which repetition a request is."""
_STAINLESS = "x-stainless-lang"
"""A header of all their versions; early ones do not count."""


class _Failures(Struct, frozen=True):
    """Of one request: how often in a row, since the agent's own call; and whether the last reply never came."""

    count: int
    lost: bool


class Attempts:
    """The requests of one trial that failed and may come again."""

    def __init__(self) -> None:
        self._failed: dict[str, _Failures] = {}

    def which(self, header: Get, key: str) -> int:
        """Which repetition a request is: 0 is a call of the agent's own. Repetitions have the `key` in common."""
        before = self._failed.get(key)
        return 0 if before is None else _repetition(header, before)

    def failed(self, key: str) -> bool:
        """Whether the same request was made before, and failed."""
        return key in self._failed

    def ended(self, key: str, retry: int, *, well: bool, lost: bool) -> None:
        """How the attempt went, as the client saw it; `lost`: no reply came at all."""
        if well:
            self._failed.pop(key, None)
            return
        self._failed[key] = _Failures(retry + 1, lost)
        if len(self._failed) > KEPT:
            del self._failed[next(iter(self._failed))]


def _repetition(header: Get, before: _Failures) -> int:
    """Which repetition it can be, after these failures. A header claims no more of them than were seen."""
    told = header(_COUNT)
    if told is not None and told.isdecimal():
        return min(int(told[:9]), before.count)
    if told is None and header(_STAINLESS) is not None:
        return before.count
    once = before.lost and before.count == 1
    return 1 if once and "google-genai-sdk" in (header("x-goog-api-client") or "") else 0


CALLS_KEPT = 200
CHARACTERS_KEPT = 100_000
"""Of one conversation; of a longer one only the calls are known."""


class _Known(Struct, frozen=True):
    """A call that a model asked for, and the conversation up to it."""

    call: ToolCall
    said: tuple[ChatMessage, ...]


class Continued:
    """The latest calls of one trial."""

    def __init__(self) -> None:
        self._kept: dict[str, _Known] = {}

    def keep(self, calls: tuple[ToolCall, ...], text: str, asked: ModelRequest) -> None:
        """The model has answered a request with these calls, and this text beside them."""
        if not calls:
            return
        before = asked.messages if _size(asked.messages) <= CHARACTERS_KEPT else ()
        said = (*before, ChatMessage("assistant", text[:CHARACTERS_KEPT], calls))
        for call in [call for call in calls if call.id]:
            self._kept.pop(call.id, None)
            self._kept[call.id] = _Known(call, said)
        while len(self._kept) > CALLS_KEPT:
            del self._kept[next(iter(self._kept))]

    def whole(self, asked: ModelRequest) -> ModelRequest:
        """The request with what went before it, if it goes on with the results of calls that are known."""
        if not asked.goes_on:
            return asked
        known = next((self._kept[r.key] for r in asked.results if r.key in self._kept), None)
        if known is None:
            return asked
        told = [message for message in asked.messages if message.role == "system"]
        before = [message for message in known.said if not told or message.role != "system"]
        own = [self._named(message) for message in asked.messages if message.role != "system"]
        return replace(asked, messages=(*told, *before, *own))

    def _named(self, message: ChatMessage) -> ChatMessage:
        return replace(message, results=tuple(map(self._of_tool, message.results))) if message.results else message

    def _of_tool(self, result: ToolResult) -> ToolResult:
        known = self._kept.get(result.key)
        if known is None:
            return result
        return replace(result, name=result.name or known.call.name, arguments=known.call.arguments)


def _size(messages: Iterable[ChatMessage]) -> int:
    return sum(
        len(message.text)
        + sum(len(result.text) for result in message.results)
        + sum(len(call.arguments) for call in message.tool_calls)
        for message in messages
    )
