"""What was settled for tool results, kept for when they come again: with every request, and not always the same."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias

from msgspec import Struct

from holdfast.planes.llm.results.result_position import ResultPosition

MARKS_KEPT = 200_000
"""More than the results of any conversation need; the oldest go."""

_BY_PLACE = 2
"""So many marks of a result hold its place: these are sure."""
_BY_KEY = 3
"""The next one holds its key, and also does for a result that the model has not read yet."""
_BY_ID = 5
"""The next ones hold its id, if it has one."""


Faulted: TypeAlias = tuple[str, int]
"""A call whose result a fault changed: its tool, and which call of it."""


class Settled(Struct, frozen=True):
    """A result as the model is to read it; None: as the tool gave it."""

    text: str | None = None
    failed: bool = False
    asked_for: bool = True
    """It is a call of this trial."""
    heard: tuple[bytes, ...] = ()
    """Texts of the conversation that it was a call in, as `ResultPosition.heard` knows them."""
    call: Faulted | None = None
    """Which call it is the result of, if a fault changed it."""


PASSES = Settled(asked_for=False)
"""A result that no model asked for."""


class Settlements:
    """Those of one trial."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Settled] = {}

    def keep(self, at: ResultPosition, settled: Settled) -> None:
        """What is no call is known by its place alone."""
        if settled.asked_for:
            self._kept |= dict.fromkeys(_marks(at), settled)
        else:
            for mark in _marks(at)[:_BY_PLACE]:
                self._kept.setdefault(mark, settled)
        while len(self._kept) > MARKS_KEPT:
            del self._kept[next(iter(self._kept))]

    def recall(self, found: Sequence[ResultPosition], *, own: bool = False) -> list[Settled | None]:
        """What was settled for the results of a request, even if the agent has shortened them or what went before.

        The surest marks of all results come first, and each call has one result. `own`: the request is known to go on
        with a conversation of this trial.
        """
        marks = [_marks(at) for at in found]
        known: list[Settled | None] = [None] * len(found)
        taken: set[int] = set()
        for level in range(max(map(len, marks), default=0)):
            for n, at in enumerate(found):
                if known[n] is not None or (at.fresh and level >= _BY_KEY) or level >= len(marks[n]):
                    continue
                settled = self._kept.get(marks[n][level])
                if settled is None or id(settled) in taken or not _trusted(settled, at, level, own):
                    continue
                known[n] = settled
                if settled.asked_for:
                    taken.add(id(settled))
        return known


def _trusted(settled: Settled, at: ResultPosition, level: int, own: bool) -> bool:
    """Whether a mark is enough: without the result's place or its id, the conversation must be the call's own, or the
    result wait for the model, as no example does."""
    known = level < (_BY_ID if at.id else _BY_KEY if at.last or own else _BY_PLACE)
    return known or at.after(*settled.heard)


def _marks(at: ResultPosition) -> tuple[bytes, ...]:
    """What a result is known by, the surest first: place and text, place, key; id and text, id; text, call."""
    result = at.result
    call = _mark("call", result.name, result.arguments)
    text = _mark("text", result.text)
    place = _mark("place", result.key, call, at.before)
    by_id = (_mark("id", at.id, call, text), _mark("id", at.id, call)) if at.id else ()
    return (_mark(place, text), place, _mark("key", result.key, call), *by_id, _mark(call, text), call)


def _mark(*parts: str | bytes) -> bytes:
    made = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        made.update(b"%d:" % len(data))
        made.update(data)
    return made.digest()
