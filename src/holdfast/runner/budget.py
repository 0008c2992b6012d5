"""What a run may take: trials, money, time. It ends cleanly where one of them is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from holdfast.model.trial import Trial
from holdfast.plan import RunOptions


class Budget:
    """Lets trials through as long as something is left; those under way come to their end."""

    def __init__(
        self, options: RunOptions, done: int, spent_usd: Callable[[], float], clock: Callable[[], float]
    ) -> None:
        """`done` trials count already: a run that is taken up goes on with what it had used of trials and money."""
        self._options = options
        self._taken = done
        self._spent_usd = spent_usd
        self._clock = clock
        self._began = clock()
        self.ended_by = ""
        """The option that ended the run; empty if none has."""

    def within(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """The trials, up to the one that nothing is left for."""
        limits = (self._options.max_trials, self._options.max_cost, self._options.max_time_s)
        return iter(trials) if limits == (None, None, None) else self._counted(iter(trials))

    def _counted(self, feed: Iterator[Trial]) -> Iterator[Trial]:
        while not self.used_up():
            trial = next(feed, None)
            if trial is None:
                return
            self._taken += 1
            yield trial
        if next(feed, None) is None:
            self.ended_by = ""  # nothing was left out

    def used_up(self) -> bool:
        """Whether no trial may be begun any more."""
        options = self._options
        if options.max_trials is not None and self._taken >= options.max_trials:
            self.ended_by = f"--max-trials {options.max_trials}"
        elif options.max_cost is not None and self._spent_usd() >= options.max_cost:
            self.ended_by = f"--max-cost {options.max_cost:g}"
        elif options.max_time_s is not None and self._clock() - self._began >= options.max_time_s:
            self.ended_by = f"--max-time {options.max_time_s:g}s"
        return bool(self.ended_by)
