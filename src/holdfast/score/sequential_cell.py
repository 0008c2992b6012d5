"""A cell whose replicas stop once they have decided: which replica gave which verdict is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from holdfast.model.spec import Aggregation
from holdfast.model.verdict import Outcome, Verdict
from holdfast.score.cell import CellCount
from holdfast.score.sequential import SequentialTest, Stopped
from holdfast.score.unmet import NO_REASON, Why

_OUTCOMES = ("pass", "fail", "error", "unproven")


class SequentialCount(CellCount):
    """Verdicts after the one that decided change nothing: whoever shares the trials may need more of them."""

    __slots__ = ("_by_replica", "_tests", "_told")

    def __init__(self, asked: Sequence[int], how: Aggregation) -> None:
        super().__init__(asked, sum(asked))
        self._tests = [SequentialTest(how, n) if n else None for n in asked]
        self._by_replica: list[dict[int, str]] = [{} for _ in asked]
        self._told = False

    def count(self, place: int, replica: int, verdict: Verdict) -> None:
        super().count(place, replica, verdict)
        self._by_replica[place][replica] = verdict.outcome

    def stopped(self, place: int) -> Stopped:
        """What the replicas of one prompt came to."""
        test, seen = self._tests[place], self._by_replica[place]
        assert test is not None, "nothing is asked there"
        return test.stop(seen[replica] for replica in sorted(seen))

    def open_at(self, place: int) -> bool:
        """Whether another replica of the prompt would tell more."""
        test = self._tests[place]
        if test is None:
            return False
        found = self.stopped(place)
        return found.outcome in ("error", "unproven") and found.used < test.limit

    def first_decided(self) -> bool:
        """Whether every prompt is decided now, and was not when this was last asked."""
        if self._told or any(self.open_at(place) for place in range(len(self.asked))):
            return False
        self._told = True
        return True

    def _prompts(self, how: Aggregation) -> tuple[int, int, bool, bool, Counter[tuple[int, int]]]:
        """As of any cell, but without the tries: where to stop depended on them, so that their rate is biased."""
        failed = undecided = 0
        broken = flaky = False
        for place, one in self._each():
            failed |= (one.outcome == "fail") << place
            undecided |= (one.outcome in ("error", "unproven")) << place
            broken |= one.outcome == "error"
            flaky |= bool(one.passes and one.fails)
        return failed, undecided, broken, flaky, Counter()

    def _each(self) -> Iterator[tuple[int, Stopped]]:
        for place, test in enumerate(self._tests):
            if test is not None:
                yield place, self.stopped(place)

    def _why(self, outcome: Outcome, prompts: int) -> Why:
        limits = [one.used for _, one in self._each() if one.at_limit]
        if outcome == "pass":
            return Why(f"passed at the limit of {max(limits)} replicas", "passed-at-limit") if limits else NO_REASON
        if (first := self._first(outcome, prompts)) is not None:
            return first
        missing = [(one.used, self.asked[place]) for place, one in self._each() if self.open_at(place)]
        used, most = missing[0] if missing else (0, 0)
        return Why(f"undecided after {used} of at most {most} replicas: the next did not run", "not-run")
