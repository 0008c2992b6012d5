"""Planners: decide what to run next, based on what was judged."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from holdfast.model.judged import JudgingProgress
from holdfast.model.trial import Trial
from holdfast.plan.layout import LazySequence


class OncePlanner:
    """Returns every trial at the start, then none."""

    detailed = False

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        return () if judged.done else self._trials


class FailFastPlanner:
    """Returns `width` trials at a time until one has failed."""

    detailed = False

    def __init__(self, trials: Sequence[Trial], width: int) -> None:
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self._trials = trials
        self._width = width

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        return () if judged.failed else self._trials[judged.done : judged.done + self._width]


class RoundsPlanner:
    """Returns one replica of every undecided prompt, then the next one.

    A complete round is judged before the next is made, so the trials depend neither on the order in which they end nor
    on how many run in parallel. `wants` says whether a trial would help to decide; `fail_fast` ends the run after the
    round in which it failed.
    """

    detailed = False

    def __init__(self, trials: Sequence[Trial], wants: Callable[[Trial], bool], *, fail_fast: bool = False) -> None:
        self._trials = trials
        self._wants = wants
        self._fail_fast = fail_fast
        self._rounds: list[array[int]] = []
        """By replica: the positions of its trials."""
        for place, trial in enumerate(trials):
            while len(self._rounds) <= trial.replica:
                self._rounds.append(array("L"))
            self._rounds[trial.replica].append(place)
        self._round = 0

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        while self._round < len(self._rounds) and not (self._fail_fast and judged.failed):
            places = self._rounds[self._round]
            self._round += 1
            wanted = array("L", (place for place in places if self._wants(self._trials[place])))
            if wanted:
                return LazySequence(self._trials.__getitem__, wanted)
        return ()
