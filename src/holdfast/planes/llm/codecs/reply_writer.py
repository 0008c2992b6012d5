"""Writes a reply: as a stream, or by editing a provider's own parts as little as possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Cut, EmptyChunk, ErrorChunk, Pause, Text, ToolCall
from holdfast.planes.llm.codecs.loose import dump
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import StreamFrame
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, Asides, OriginalStream

CREATED = 1_767_225_600
"""The creation time in replies written by Holdfast: constant, so that equal replies are equal bytes."""

_PIECES = 4


class ReplyWriter(ABC):
    """How one format writes each part of a stream. `like` is the provider's stream that it replaces."""

    def __init__(self, completion: Completion, like: OriginalStream) -> None:
        self._now = completion
        self._like = like
        self._calls = 0
        """Number of calls written so far."""

    def open(self) -> Iterable[bytes]:
        """The frames before the first part."""
        return ()

    @abstractmethod
    def text(self, text: str) -> Iterable[bytes]: ...

    @abstractmethod
    def call(self, call: ToolCall) -> Iterable[bytes]: ...

    @abstractmethod
    def hollow(self) -> Iterable[bytes]: ...

    @abstractmethod
    def aside(self, data: Any) -> Iterable[bytes]:
        """A part that the neutral form does not support."""

    @abstractmethod
    def trouble(self, trouble: ErrorChunk) -> Iterable[bytes]: ...

    @abstractmethod
    def close(self) -> Iterable[bytes]:
        """The finish reason, the usage and the terminator."""

    def _beside(self) -> dict[str, Any]:
        """Fields of the next call that the neutral form does not have."""
        self._calls += 1
        return self._like.beside(self._calls - 1)


def play(completion: Completion, writer: ReplyWriter, like: OriginalStream = NOTHING) -> Iterator[StreamFrame]:
    """The frames of a reply. Nothing is sent before a pause, an error or a cut that comes first."""
    opened = False
    asides = Asides(NOTHING if completion.lacks else like, completion)
    for delta in completion.deltas:
        if isinstance(delta, (Pause, Cut)):
            yield delta
            if isinstance(delta, Cut):
                return
        elif isinstance(delta, ErrorChunk):
            yield from writer.trouble(delta)
            return
        elif isinstance(delta, (Text, ToolCall, EmptyChunk)) and not completion.lacks:
            if not opened:
                yield from writer.open()
                opened = True
            for data in asides.before(delta):
                yield from writer.aside(data)
            yield from _part(delta, writer)
    if not opened:
        yield from writer.open()
    for data in asides.rest():
        yield from writer.aside(data)
    yield from writer.close()


def _part(delta: Text | ToolCall | EmptyChunk, writer: ReplyWriter) -> Iterable[bytes]:
    if isinstance(delta, Text):
        return writer.text(delta.text)
    return writer.call(delta) if isinstance(delta, ToolCall) else writer.hollow()


def pieces(text: str) -> list[str]:
    """Splits a text into a few pieces, as providers do with arguments."""
    size = max(1, -(-len(text) // _PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def mark(completion: Completion, request: ModelRequest) -> str:
    """24 hex digits for ids, derived from the reply and its request."""
    return digest(dump([request, completion]), 12)


PartKind: TypeAlias = Literal["text", "call", "other"]


class PartFormat(Struct, frozen=True):
    """How a format distinguishes and creates parts, based on an earlier part if there is one."""

    kind: Callable[[Any], PartKind]
    text: Callable[[str, Any], Any]
    call: Callable[[ToolCall, Any], Any]


def edited(parts: list[Any], was: Completion, now: Completion, how: PartFormat) -> list[Any]:
    """The parts with changed text or calls replaced; everything else stays as it was."""
    if was.text != now.text:
        olds = [part for part in parts if how.kind(part) == "text"]
        made = [how.text(now.text, olds[0] if olds else None)] if now.text else []
        parts = _placed(parts, "text", made, how)
    if was.tool_calls != now.tool_calls:
        parts = _placed(parts, "call", _changed_calls(parts, now.tool_calls, how), how)
    return parts


def _changed_calls(parts: list[Any], calls: Sequence[ToolCall], how: PartFormat) -> list[Any]:
    olds = [part for part in parts if how.kind(part) == "call"]
    return [how.call(call, olds[at] if at < len(olds) else None) for at, call in enumerate(calls)]


def _placed(parts: list[Any], kind: PartKind, new: list[Any], how: PartFormat) -> list[Any]:
    """Inserts new parts at the position of the first of their kind; otherwise text before the calls, and calls last."""
    kinds = [how.kind(part) for part in parts]
    before = "call" if kind == "text" else ""
    at = next((i for i, part_kind in enumerate(kinds) if part_kind in (kind, before)), len(parts))
    others = [part for part, part_kind in zip(parts[at:], kinds[at:], strict=True) if part_kind != kind]
    return [*parts[:at], *new, *others]
