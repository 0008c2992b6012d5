"""Planners: what to run next, given what has been judged. Pure: they keep no count of their own."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from holdfast.model.trial import Trial


class Judged(Struct, frozen=True):
    """How far a planner's trials have come."""

    done: int = 0
    """Trials of this planner that were judged."""
    failed: bool = False
    """The run is violated, whatever is still to come."""


class Once:
    """Answers every trial at the start, then none."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials

    def next(self, judged: Judged) -> Sequence[Trial]:
        return () if judged.done else self._trials


class FailFast:
    """Answers `width` trials at a time until one has failed."""

    def __init__(self, trials: Sequence[Trial], width: int) -> None:
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self._trials = trials
        self._width = width

    def next(self, judged: Judged) -> Sequence[Trial]:
        return () if judged.failed else self._trials[judged.done : judged.done + self._width]
