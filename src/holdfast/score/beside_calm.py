"""Every rule on every prompt, in calm and under chaos: counted from decided cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from holdfast.model.score import PairedDifference
from holdfast.model.spec import Invariant
from holdfast.score.cell import Decision
from holdfast.score.paired import RatePair, paired_difference
from holdfast.score.tally import Tally

MOST = 200_000
"""Rules on prompts that did not hold somewhere: with more of them the difference is not worked out."""


class BesideCalm:
    """Cells by rule; single prompts are kept only where they did not hold.

    A prompt's replicas count as the cell has them: it held there or not.
    """

    def __init__(self, tally: Tally) -> None:
        self._plan = tally.plan
        self.counted: dict[tuple[str, bool], int] = {}
        """By rule, and whether it was chaos: cells that count, those that passed among them."""
        self._lost: dict[tuple[str, bool, int], int] = {}
        """By the same and the place of a prompt: how many of them it failed in."""
        self._open: dict[tuple[str, bool, int], int] = {}
        """The same: how many of them left it undecided."""

    def add(self, rule: Invariant, chaos: bool, decision: Decision) -> None:
        """A cell that did not pass. One that passed without its fault met counts nowhere."""
        idle = not decision.failed and not decision.undecided
        if (decision.outcome in ("unproven", "error") and idle) or decision.why.code == "not-asked":
            return
        key = rule.id, chaos
        self.counted[key] = self.counted.get(key, 0) + 1
        if idle or len(self._lost) + len(self._open) > MOST:
            return
        for place in range(max(decision.failed, decision.undecided).bit_length()):
            at = rule.id, chaos, place
            if decision.failed >> place & 1:
                self._lost[at] = self._lost.get(at, 0) + 1
            if decision.undecided >> place & 1:
                self._open[at] = self._open.get(at, 0) + 1

    def difference(self) -> PairedDifference | None:
        """Chaos minus calm; None if nothing was decided in both."""
        if len(self._lost) + len(self._open) > MOST:
            return None
        rules: set[str] = set()
        found = paired_difference(self._pairs(rules))
        return found and replace(found, rules=len(rules))

    def _pairs(self, rules: set[str]) -> Iterator[RatePair]:
        """The rules that have pairs are put into `rules`."""
        numbers: dict[object, int] = {}
        for rule in self._plan.invariants:
            if not self.counted.get((rule.id, False)) or not self.counted.get((rule.id, True)):
                continue
            for place, task in enumerate(self._plan.tasks(rule.id)):
                calm, chaos = self._rate(rule.id, False, place), self._rate(rule.id, True, place)
                if calm is not None and chaos is not None:
                    rules.add(rule.id)
                    yield RatePair(numbers.setdefault(task, len(numbers)), calm, chaos)

    def _rate(self, rule: str, chaos: bool, place: int) -> float | None:
        decided = self.counted[rule, chaos] - self._open.get((rule, chaos, place), 0)
        return 1 - self._lost.get((rule, chaos, place), 0) / decided if decided else None
