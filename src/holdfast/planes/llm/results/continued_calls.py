"""Requests that only go on with a conversation which their server keeps.

What answers in a provider's place keeps none: it is given the one in which the calls were asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult

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
