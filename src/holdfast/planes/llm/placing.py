"""Where in its conversation a tool result stands: what was said before its call, and whether the model has read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from msgspec import Struct

from holdfast.planes.llm.asked import Message, ToolResult

_SIZE = 12


class Placed(Struct, frozen=True):
    """A result in a conversation."""

    result: ToolResult
    before: bytes
    """Digest of all that was said before the model asked for the call. Results are no part of it: agents cut them."""
    fresh: bool
    """The model has said nothing since."""


def placed(messages: Sequence[Message]) -> list[Placed]:
    """Every result of a conversation, in order."""
    if not any(message.results for message in messages):
        return []
    told = blake2b(digest_size=_SIZE)
    before = told.digest()
    found: list[tuple[ToolResult, bytes]] = []
    fresh_from = 0
    for message in messages:
        if message.role == "assistant":
            before, fresh_from = told.digest(), len(found)
        found += [(result, before) for result in message.results]
        _tell(told, message)
    return [Placed(result, at, n >= fresh_from) for n, (result, at) in enumerate(found)]


def said(messages: Iterable[Message]) -> bytes:
    """Digest of a whole conversation: the `before` of the calls that the model asks for next."""
    told = blake2b(digest_size=_SIZE)
    for message in messages:
        _tell(told, message)
    return told.digest()


def _tell(told: blake2b, message: Message) -> None:
    if message.role == "tool":
        return
    told.update(f"\0{message.role}\0{message.text}".encode("utf-8", "surrogatepass"))
    for call in message.tool_calls:
        told.update(f"\1{call.id}\1{call.name}\1{call.arguments}".encode("utf-8", "surrogatepass"))
