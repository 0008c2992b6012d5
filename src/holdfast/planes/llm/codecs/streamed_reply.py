"""Collects a streamed reply for the readers of all formats.

Content outside the neutral form (thoughts and their signatures, further choices, citations) is kept as it arrived and
sent again at the same position. Faults change only text, calls and endings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.completion import (
    Completion,
    Delta,
    EmptyChunk,
    ErrorChunk,
    Finish,
    FinishReason,
    Text,
    ToolCall,
    Usage,
)


class ExtraPart(Struct, frozen=True):
    """One part outside the neutral form."""

    kind: str
    """A readable name; empty if it only reflects how the format splits its text."""
    data: Any
    """The data that its format needs to write it again."""
    text: int = 0
    """Number of text characters before it."""
    calls: int = 0
    """Number of tool calls before it."""
    of_text: bool = False
    """Whether it refers to the text before it, and is meaningless if that text changes."""


class OriginalStream(Struct, frozen=True):
    """The parts of a provider's stream that the neutral form does not support."""

    before: Completion = Completion()
    """The stream in neutral form."""
    first: Any = None
    """Its first event, with ids and times that every event repeats."""
    last: Any = None
    """Its last event, with the usage in the provider's own terms."""
    extras: tuple[ExtraPart, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    """Fields of each tool call that the neutral form does not have."""


NOTHING = OriginalStream()


class ExtraParts:
    """Returns the extras of a stream that is written again, each at its position."""

    def __init__(self, original: OriginalStream, after: Completion) -> None:
        same = _measure_common_prefix(original.before.text, after.text) if original.extras else 0
        self._remaining = deque(extra for extra in original.extras if _can_keep(extra, same))
        self._all = len(original.before.text)
        self._text_size = 0
        self._calls = 0

    def pop_before(self, part: Delta) -> list[Any]:
        """Return the extras before a part of the reply."""
        data = []
        while self._remaining and self._is_due(self._remaining[0], part):
            data.append(self._remaining.popleft().data)
        if isinstance(part, Text):
            self._text_size += len(part.text)
        self._calls += isinstance(part, ToolCall)
        return data

    def pop_rest(self) -> list[Any]:
        """Return the extras before the end."""
        data = [extra.data for extra in self._remaining]
        self._remaining.clear()
        return data

    def _is_due(self, extra: ExtraPart, part: Delta) -> bool:
        """Return whether an extra must be sent now. One after the complete text waits for the complete new text, even
        if that is longer."""
        if extra.calls > self._calls:
            return False
        # Positions are characters of the original text. If a fault has made the text longer, what came after the
        # original text must still come after the new one, and not in the middle of it.
        inside = extra.text == 0 or extra.text < self._all
        return isinstance(part, ToolCall) or (inside and extra.text <= self._text_size)


def list_left_out(original: OriginalStream, after: Completion) -> tuple[str, ...]:
    """Return the parts that a changed reply cannot keep."""
    if after.lacks or not original.extras:
        return ()
    same = _measure_common_prefix(original.before.text, after.text)
    return tuple(dict.fromkeys(extra.kind for extra in original.extras if extra.kind and not _can_keep(extra, same)))


def _can_keep(extra: ExtraPart, same: int) -> bool:
    return not extra.of_text or extra.text <= same


def _measure_common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


class _Call(Struct):
    """A call whose arguments are still arriving."""

    id: str
    name: str
    arguments: list[str] = []
    fallback: str = ""
    extra_fields: dict[str, Any] = {}

    def build_call(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.arguments) or self.fallback)


class StreamedReply:
    """The stream so far, with what the neutral form does not support, to write it again."""

    def __init__(self) -> None:
        self.first: Any = None
        self.last: Any = None
        """The first and the last event, as they arrived."""
        self._extras: list[ExtraPart] = []
        self._begun: list[_Call] = []
        self.model = ""
        self.lacks: Literal["", "choices", "message"] = ""
        self._deltas: list[Delta | _Call] = []
        self._calls: dict[int | str, _Call] = {}
        self._others: dict[int | str, _Call] = {}
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None
        self._error: ErrorChunk | None = None
        self._text_size = 0

    def add_text(self, text: str) -> None:
        if text:
            self._text_size += len(text)
            self._deltas.append(Text(text))

    def add_call(self, key: int | str, id: str, name: str, arguments: str = "", *, fallback: str = "") -> None:
        """Add a piece of a call; `fallback` is used as its arguments if no piece of them arrives."""
        # Some servers give every call the same index, and repeat the id in each piece. A different id therefore begins
        # a new call, although its key is known.
        call = self._calls.get(key)
        if call is None or (id and call.id and id != call.id):
            call = self._calls[key] = _Call(id, name)
            self._begun.append(call)
            self._deltas.append(call)
        call.fallback = call.fallback or fallback
        self._extend_call(call, id, name, arguments)

    def add_other_call(self, key: int | str, id: str, name: str, arguments: str = "") -> None:
        """Add a piece of a call that faults do not change."""
        self._extend_call(self._others.setdefault(key, _Call(id, name)), id, name, arguments)

    def _extend_call(self, call: _Call, id: str, name: str, arguments: str) -> None:
        call.id = call.id or id
        call.name = call.name or name
        call.arguments.append(arguments)

    def add_arguments(self, key: int | str, arguments: str) -> None:
        """Add arguments to an open call."""
        if key in self._calls:
            self.add_call(key, "", "", arguments)

    def add_call_fields(self, key: int | str, fields: dict[str, Any]) -> None:
        """Add fields to an open call that the neutral form does not have."""
        if key in self._calls:
            self._calls[key].extra_fields |= fields

    def add_extra(self, kind: str, data: Any, *, of_text: bool = False) -> None:
        """Add a part that the neutral form does not support."""
        self._extras.append(ExtraPart(kind, data, self._text_size, len(self._begun), of_text))

    def build_original(self) -> OriginalStream:
        """Return the parts outside the neutral form so far."""
        calls = tuple([call.extra_fields for call in self._begun])
        return OriginalStream(self.build_completion(), self.first, self.last, tuple(self._extras), calls)

    def set_finish(self, reason: FinishReason) -> None:
        self._finish = reason

    def set_usage(self, usage: Usage) -> None:
        self._usage = usage

    def set_error(self, error: ErrorChunk) -> None:
        self._error = self._error or error

    def add_empty(self) -> None:
        self._deltas.append(EmptyChunk())

    @property
    def is_empty(self) -> bool:
        """Whether neither text nor a call has arrived."""
        return not any(isinstance(delta, (Text, _Call)) for delta in self._deltas)

    @property
    def count(self) -> int:
        """Number of parts so far."""
        return len(self._deltas)

    @property
    def others(self) -> int:
        """Number of calls so far that faults do not change."""
        return len(self._others)

    @property
    def has_calls(self) -> bool:
        """Whether a call has arrived."""
        return bool(self._calls)

    def build_completion(self) -> Completion:
        deltas: list[Delta] = [delta.build_call() if isinstance(delta, _Call) else delta for delta in self._deltas]
        finish = None if self._finish is None else Finish(self._finish)
        deltas += [delta for delta in (finish, self._usage, self._error) if delta is not None]
        others = tuple([call.build_call() for call in self._others.values()])
        return Completion(tuple(deltas), self.model, self.lacks, other_calls=others)


EventReader: TypeAlias = Callable[[dict[str, Any], StreamedReply], None]
"""Reads one event of a stream into the reply so far."""
