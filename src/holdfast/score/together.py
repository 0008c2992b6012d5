"""Cells that failed together: by the same prompt in the same trials. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from holdfast.model.codec import canonical
from holdfast.model.score import Cell


class Together:
    """Takes failed cells in any order; those that failed by a common prompt are one event."""

    def __init__(self, own: Collection[str]) -> None:
        """`own` are the rules that have trials of their own: their cells fail each for itself."""
        self._own = frozenset(own)
        self._alone: list[float] = []
        self._events: dict[tuple[str, bytes], list[tuple[int, float]]] = {}
        """By scenario and params: prompts, as bits, no two alike, and the weight that they took."""
        self._squares = 0.0

    def add(self, cell: Cell, prompts: int) -> None:
        """A failed cell, and the prompts that it failed by, as bits."""
        self._squares += cell.weight**2
        if cell.invariant in self._own:
            self._alone.append(cell.weight)
            return
        events = self._events.setdefault((cell.scenario, canonical(cell.params)), [])
        same = [one for one in events if one[0] & prompts]
        for one in same:
            prompts |= one[0]
            events.remove(one)
        events.append((prompts, cell.weight + sum(weight for _, weight in same)))

    @property
    def events(self) -> int:
        """How many there were."""
        return sum(1 for _ in self._weights())

    @property
    def heap(self) -> float:
        """How many equal cells an event takes with it, as far as the spread of the score goes."""
        return sum(weight**2 for weight in self._weights()) / self._squares if self._squares else 0.0

    def _weights(self) -> Iterator[float]:
        yield from self._alone
        for events in self._events.values():
            yield from (weight for _, weight in events)
