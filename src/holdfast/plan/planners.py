"""Planners: what to run next, given what has been judged. Pure: they keep no count of their own."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.trial import Judged, Trial


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
