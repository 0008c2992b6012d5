"""Trials that ended badly, and whether a rule failed because of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from holdfast import plugins
from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant
from holdfast.model.verdict import Verdict

_WORDS = {
    "timeout": "a timeout",
    "limit": "a limit of agent.limits",
    "crashed": "a crash",
    "out_of_memory": "a lack of memory",
    "raised": "an exception",
}
"""Endings that a reader should know about. An agent may end without an answer if only its work counts."""


class BadEndings:
    """The bad endings of a run's trials."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._invariants = invariants
        self.unminded: Counter[str] = Counter()
        """Trials that ended badly and failed no rule, by their ending."""
        self.minded: set[str] = set()
        """Endings that failed a rule on endings in some trial."""

    @cached_property
    def _rules(self) -> frozenset[str]:
        """Rules that judge only how a trial ends."""
        checks = ((rule.id, plugins.find("checks", rule.check)) for rule in self._invariants)
        return frozenset(id for id, check in checks if check is not None and check.traits.reads == "ending")

    def add(self, observation: Observation, verdicts: Sequence[Verdict]) -> None:
        """Add a trial that ended badly."""
        ending = observation.turns[-1].ending
        if any(one.outcome == "fail" and one.invariant in self._rules for one in verdicts):
            self.minded.add(ending)
        if not observation.error and all(verdict.outcome not in ("fail", "error") for verdict in verdicts):
            self.unminded[ending] += 1

    def describe_endings(self, trials: int) -> Iterator[str]:
        """Yield a note for each bad ending that failed no rule.

        Contracts try each rule separately: if a rule on endings failed for the same ending, the reader already knows.
        """
        advice = "" if self._rules else " (a `completes` rule would fail)"
        for ending, words in _WORDS.items():
            if (count := self.unminded[ending]) and ending not in self.minded:
                were = "it was" if count == 1 else "they were"
                yield (
                    f"{count} of {trials} trial{'' if trials == 1 else 's'} ended in {words} and failed no rule: "
                    f"{were} judged on what there was{advice}"
                )
