"""A streamed reply as it is read: what every format's reader gathers, bounded whatever the other side sends.

What a stream says beside the neutral form (thoughts and their signatures, further choices, citations) is kept as it
came, and sent again in its place: faults act on text, calls and ends, and know none of these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from holdfast.model.completion import Completion, Delta, Finish, FinishReason, Hollow, Text, ToolCall, Trouble, Usage
from holdfast.planes.llm.codecs.loose import obj, parse


class Aside(Struct, frozen=True):
    """One such part."""

    kind: str
    """What it is, for people; empty where it is only how the format cuts its text."""
    data: Any
    """What its format needs to write it again."""
    text: int = 0
    """Characters of text that came before it."""
    calls: int = 0
    """Tool calls that came before it."""
    of_text: bool = False
    """It speaks of the text before it, and means nothing where that is another."""


class OriginalStream(Struct, frozen=True):
    """A provider's own stream, as far as the neutral form has no place for it."""

    was: Completion = Completion()
    """What it says in neutral form."""
    first: Any = None
    """Its first event: ids and times that every event repeats."""
    last: Any = None
    """The event that ends it: what it used, in the provider's own words."""
    asides: tuple[Aside, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    """Fields of each tool call that the neutral form does not have."""

    def beside(self, n: int) -> dict[str, Any]:
        """Such fields of the nth call, from 0."""
        return self.calls[n] if n < len(self.calls) else {}


NOTHING = OriginalStream()


class Asides:
    """The asides of a stream that is written again, each when its place has come."""

    def __init__(self, like: OriginalStream, now: Completion) -> None:
        same = _same(like.was.text, now.text) if like.asides else 0
        self._left = deque(aside for aside in like.asides if _fits(aside, same))
        self._all = len(like.was.text)
        self._said = 0
        self._calls = 0

    def before(self, part: Delta) -> list[Any]:
        """What comes before a part of the reply."""
        found = []
        while self._left and self._due(self._left[0], part):
            found.append(self._left.popleft().data)
        if isinstance(part, Text):
            self._said += len(part.text)
        self._calls += isinstance(part, ToolCall)
        return found

    def rest(self) -> list[Any]:
        """What comes before the end."""
        found = [aside.data for aside in self._left]
        self._left.clear()
        return found

    def _due(self, aside: Aside, part: Delta) -> bool:
        """What stood after all of the text waits for all of the new one, be it longer."""
        if aside.calls > self._calls:
            return False
        inside = aside.text == 0 or aside.text < self._all
        return isinstance(part, ToolCall) or (inside and aside.text <= self._said)


def left_out(like: OriginalStream, now: Completion) -> tuple[str, ...]:
    """What a changed reply cannot keep."""
    if now.lacks or not like.asides:
        return ()
    same = _same(like.was.text, now.text)
    return tuple(dict.fromkeys(aside.kind for aside in like.asides if aside.kind and not _fits(aside, same)))


def _fits(aside: Aside, same: int) -> bool:
    return not aside.of_text or aside.text <= same


def _same(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


CHARACTERS_KEPT = 16_000_000
"""Of one reply, text and arguments together: far beyond what a model writes."""
DELTAS_KEPT = 200_000


class _Call:
    """A call whose arguments are still coming."""

    __slots__ = ("arguments", "beside", "id", "name", "otherwise")

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.beside: dict[str, Any] = {}
        self.name = name
        self.arguments: list[str] = []
        self.otherwise = ""

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.arguments) or self.otherwise)


class StreamedReply:
    """What has come so far. `keep`: also what the neutral form does not know, should it be written again."""

    def __init__(self, *, keep: bool = False) -> None:
        self.keep = keep
        self.last: Any = None
        """The event that ended it, as it came."""
        self._asides: list[Aside] = []
        self._begun: list[_Call] = []
        self.model = ""
        self.lacks: Literal["", "choices", "message"] = ""
        self._deltas: list[Delta | _Call] = []
        self._calls: dict[int | str, _Call] = {}
        self._others: dict[int | str, _Call] = {}
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None
        self._trouble: Trouble | None = None
        self._room = CHARACTERS_KEPT
        self._said = 0

    def text(self, text: str) -> None:
        if text and (kept := self._fitting(text)):
            self._said += len(kept)
            self._add(Text(kept))

    def call(self, key: int | str, id: str, name: str, arguments: str = "", *, otherwise: str = "") -> None:
        """A piece of a call; `otherwise` are its arguments if no piece of them comes."""
        call = self._calls.get(key)
        if call is None or (id and call.id and id != call.id):  # some servers give every call the same index
            call = self._calls[key] = _Call(id, name)
            self._begun.append(call)
            self._add(call)
        call.otherwise = call.otherwise or self._fitting(otherwise)
        self._go_on(call, id, name, arguments)

    def other_call(self, key: int | str, id: str, name: str, arguments: str = "") -> None:
        """A piece of a call that faults leave as it is."""
        if key not in self._others and len(self._others) >= DELTAS_KEPT:
            return
        self._go_on(self._others.setdefault(key, _Call(id, name)), id, name, arguments)

    def _go_on(self, call: _Call, id: str, name: str, arguments: str) -> None:
        call.id = call.id or id
        call.name = call.name or name
        if arguments and (kept := self._fitting(arguments)):
            call.arguments.append(kept)

    def more(self, key: int | str, arguments: str) -> None:
        """More arguments of a call that has begun."""
        if key in self._calls:
            self.call(key, "", "", arguments)

    def beside(self, key: int | str, fields: dict[str, Any]) -> None:
        """Fields of a call that has begun which the neutral form does not have."""
        if key in self._calls:
            self._calls[key].beside |= fields

    def aside(self, kind: str, data: Any, *, of_text: bool = False) -> None:
        """A part that the neutral form does not know."""
        if self.keep and len(self._asides) < DELTAS_KEPT:
            self._asides.append(Aside(kind, data, self._said, len(self._begun), of_text))

    def like(self, first: Any) -> OriginalStream:
        """What has come beside the neutral form."""
        if not self.keep:
            return OriginalStream(first=first)
        calls = tuple([call.beside for call in self._begun])
        return OriginalStream(self.completion(), first, self.last, tuple(self._asides), calls)

    def finish(self, reason: FinishReason) -> None:
        self._finish = reason

    def usage(self, usage: Usage) -> None:
        self._usage = usage

    def trouble(self, trouble: Trouble) -> None:
        self._trouble = self._trouble or trouble

    def hollow(self) -> None:
        self._add(Hollow())

    @property
    def empty(self) -> bool:
        """No text and no call has come."""
        return not any(isinstance(delta, (Text, _Call)) for delta in self._deltas)

    @property
    def count(self) -> int:
        """How many parts have come."""
        return len(self._deltas)

    @property
    def others(self) -> int:
        """How many calls have come that faults leave as they are."""
        return len(self._others)

    @property
    def calls(self) -> bool:
        """A call has come."""
        return bool(self._calls)

    def completion(self) -> Completion:
        deltas: list[Delta] = [delta.whole() if isinstance(delta, _Call) else delta for delta in self._deltas]
        finish = None if self._finish is None else Finish(self._finish)
        deltas += [delta for delta in (finish, self._usage, self._trouble) if delta is not None]
        others = tuple([call.whole() for call in self._others.values()])
        return Completion(tuple(deltas), self.model, self.lacks, other_calls=others)

    def _add(self, delta: Delta | _Call) -> None:
        if len(self._deltas) < DELTAS_KEPT:
            self._deltas.append(delta)

    def _fitting(self, text: str) -> str:
        kept = text[: self._room] if len(text) > self._room else text
        self._room -= len(kept)
        return kept


class Parts(Protocol):
    """Splits a stream into its events, lines or elements, each the text of a JSON value."""

    def feed(self, data: bytes) -> list[bytes]: ...


class FormatReader:
    """Reads a streamed reply of one format as it passes; `take` gathers what one event says.

    It never raises: what cannot be read, or is no JSON object, is left out.
    """

    def __init__(
        self, parts: Parts, take: Callable[[dict[str, Any], StreamedReply], None], *, keep: bool = False
    ) -> None:
        self._parts = parts
        self._take = take
        self._got = StreamedReply(keep=keep)
        self._first: dict[str, Any] | None = None

    def feed(self, data: bytes) -> None:
        for told in self._parts.feed(data):
            if found := obj(parse(told)):
                self._first = self._first or found
                self._take(found, self._got)

    def completion(self) -> Completion:
        """What has come so far; one Text for each chunk of text, in order."""
        return self._got.completion()

    def like(self) -> OriginalStream:
        """What the stream says beside that: all of it, if the reader was made to keep it, else its first event."""
        return self._got.like(self._first)
