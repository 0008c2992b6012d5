"""The usage of a run's trials (tokens and money), and its bad endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from holdfast import plugins
from holdfast.checks.trace.calls import find_calls, find_outermost_calls, split_requested
from holdfast.model.endings import WORDS
from holdfast.model.observation import EndingKind, Observation
from holdfast.model.score import CostEstimate, Spent
from holdfast.model.spec import Invariant
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict
from holdfast.reading.words import format_plural

MODELS_NAMED = 20
"""Models without a price that are named: an agent may invent any number."""
_NANO = 1_000_000_000


class SpendingTally:
    """Adds up integers, so the order of trials never changes the sums."""

    def __init__(self) -> None:
        self._calls = self._retries = self._input = self._output = self._nano_usd = self._scripted = 0
        self._priced = False
        self._unpriced: set[str] = set()

    def add(self, trace: Iterable[TraceEvent]) -> None:
        """Add all calls of one trial."""
        own_calls = find_calls(trace)
        made, _ = split_requested(find_outermost_calls(own_calls))
        for event in made:
            if event.retry:
                self._retries += 1
            else:
                self._calls += 1
        for event in own_calls:
            if event.script:
                self._scripted += event.event_type == "llm_call"
            elif event.cost is not None:
                self._add_cost(event)

    def _add_cost(self, event: TraceEvent) -> None:
        cost = event.cost
        assert cost is not None
        self._input += cost.input_tokens
        self._output += cost.output_tokens
        if not cost.billed:
            return
        if cost.estimated_usd is not None:
            self._priced = True
            # In integers, because the sum of floats depends on their order, and trials end in any order.
            self._nano_usd += round(cost.estimated_usd * _NANO)
        elif (cost.input_tokens or cost.output_tokens) and len(self._unpriced) < MODELS_NAMED:
            self._unpriced.add(cost.model or event.tool)

    @property
    def usd(self) -> float:
        """The known cost so far, in US dollars."""
        return self._nano_usd / _NANO

    def build_result(self) -> Spent | None:
        """Return the totals; None if there was no call."""
        if not self._calls and not self._retries:
            return None
        usd = self._nano_usd / _NANO if self._priced else None
        unpriced = tuple(sorted(self._unpriced))
        return Spent(self._calls, self._retries, self._input, self._output, usd, unpriced, self._scripted)


def estimate_cost(calm: SpendingTally, trials: int, max_trials: int | None) -> CostEstimate | None:
    """Return the cost of a hunt, from so many calm trials; None if no live model was asked."""
    used = calm.build_result()
    if used is None or not trials or (used.cost_usd is None and not used.unpriced):
        return None
    times = None if max_trials is None else max_trials / trials
    return CostEstimate(
        trials,
        used.tokens,
        used.cost_usd,
        used.unpriced,
        max_trials,
        None if times is None else round(used.tokens * times),
        None if times is None or used.cost_usd is None else round(used.cost_usd * times, 6),
    )


def compute_spent(trace: Iterable[TraceEvent]) -> Spent | None:
    """Return what one trial used; None if there was no call."""
    spending = SpendingTally()
    spending.add(trace)
    return spending.build_result()


_NOTED: tuple[EndingKind, ...] = ("timeout", "limit", "crashed", "out_of_memory", "raised")
"""Endings that a reader should know about. An agent may end without an answer if only its work counts."""


class BadEndings:
    """The bad endings of a run's trials."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._invariants = invariants
        self.unjudged: Counter[str] = Counter()
        """Trials that ended badly and failed no rule, by their ending."""
        self.judged: set[str] = set()
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
            self.judged.add(ending)
        if not observation.error and all(verdict.outcome not in ("fail", "error") for verdict in verdicts):
            self.unjudged[ending] += 1

    def describe_endings(self, trials: int) -> Iterator[str]:
        """Yield a note for each bad ending that failed no rule.

        Contracts try each rule separately: if a rule on endings failed for the same ending, the reader already knows.
        """
        advice = "" if self._rules else " (a `completes` rule would fail)"
        for ending in _NOTED:
            if (count := self.unjudged[ending]) and ending not in self.judged:
                which = f"{count} of {format_plural(trials, 'trial')}"
                yield f"{WORDS[ending]} in {which}, but no rule failed: only the output up to then was judged{advice}"
