"""What a provider's stream says beside the neutral form: kept as it came, and sent again in its place.

Thoughts and their signatures, further choices, citations: faults act on text, calls and ends, and know none of these.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from holdfast.model.completion import Completion, Delta, Text, ToolCall


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


class Like(Struct, frozen=True):
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


NOTHING = Like()


class Asides:
    """The asides of a stream that is written again, each when its place has come."""

    def __init__(self, like: Like, now: Completion) -> None:
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


def left_out(like: Like, now: Completion) -> tuple[str, ...]:
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
