"""One cell while its verdicts arrive, and what is stored afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Scenario
from holdfast.model.score import CellCause
from holdfast.model.spec import Aggregation
from holdfast.model.verdict import Outcome, Verdict
from holdfast.score import unmet

_SLACK = 1e-9
"""Tolerance for rounding errors: 0.8 of 5 counts as 4."""


def count_needed(how: Aggregation, n: int) -> int:
    """Return how many of n replicas must pass."""
    value = how.value or 0.0
    match how.kind:
        case "all":
            return n
        case "any":
            return min(1, n)
        case "majority":
            return n // 2 + 1
        case "at_least":
            # Only some of the replicas may have been selected: then all of them must pass.
            return min(int(value), n)
        case "rate":
            return min(n, ceil(value * n - _SLACK))
        case "mean":
            raise ValueError("mean combines composites, not verdicts")


def decide_prompt(passes: int, fails: int, errors: int, n: int, need: int) -> Outcome:
    """Return the outcome of one prompt with n expected verdicts, of which `need` must pass."""
    # An undecided replica may still turn out either way, so it counts for neither side: the prompt is decided only when
    # the passes suffice without it, or when even all missing and undecided replicas together could not reach the need.
    if passes >= need:
        return "pass"
    if n - fails < need:
        return "fail"
    return "error" if errors else "unproven"


Tries = tuple[tuple[tuple[int, int], int], ...]
"""How many prompts had (passes, decided verdicts); only for prompts with several replicas."""

CauseValues = tuple[str, tuple[str, ...], str]
"""What makes two reasons the same cause: the code and the key of the finding, or the ending."""
CAUSES_KEPT = 100
"""Causes stored per cell: more than anybody reads."""

PASS, FAIL, ERROR, UNPROVEN = 0, 1, 2, 3
_CODES: Mapping[str, int] = {"pass": PASS, "fail": FAIL, "error": ERROR, "unproven": UNPROVEN}


class Decision(Struct, frozen=True, gc=False):
    """The stored result of a decided cell: no verdicts, no answers."""

    outcome: Outcome
    why: CellCause = unmet.NO_REASON
    passes: int = 0
    fails: int = 0
    errors: int = 0
    unproven: int = 0
    flaky: bool = False
    met: bool = False
    simulated: bool = False
    concurrent: bool = False
    failed: int = 0
    """Failed prompts, as bits."""
    undecided: int = 0
    """Undecided prompts, as bits."""
    tries: Tries = ()
    causes: tuple[CellCause, ...] = ()
    """The cell's causes."""


class CellCount:
    """A cell's verdicts so far, counted by prompt and outcome."""

    __slots__ = ("causes", "concurrent", "counts", "detail", "expected", "left", "met", "near", "requests", "simulated")

    keeps_tries = True
    """Whether the number of tries says something about the agent."""

    def __init__(self, expected_by_task: Sequence[int]) -> None:
        self.expected = expected_by_task
        self.left = sum(expected_by_task)
        self.counts = [0] * (4 * len(expected_by_task))
        self.causes: dict[tuple[str, int, CauseValues], tuple[int, CellCause]] = {}
        """By outcome, prompt and cause: the first replica that had it, and its reason."""
        self.met = False
        self.near = unmet.NOT_CALLED
        self.detail = ""
        """What explains a fault that was not met: calls to other targets, arguments that did not match, or why a fault
        that fired changed nothing.
        """
        self.requests = False
        """Whether a request of the agent came through the proxy."""
        self.simulated = False
        self.concurrent = False

    def add_verdict(self, place: int, replica: int, verdict: Verdict) -> None:
        """Add a verdict; for each cause the first reason in plan order is stored."""
        outcome = verdict.outcome
        self.counts[4 * place + _CODES[outcome]] += 1
        self.left -= 1
        if outcome != "pass":
            # An ending is a cause of its own, whichever code the rule gave it; the variable part of its text is left
            # out.
            ended = verdict.ended_by
            # Two replicas have one cause if code and key are equal. The replica with the lowest number gives the
            # sentence, because trials end in any order and a report must not depend on that order.
            values: CauseValues = ("", (), compute_fingerprint(ended)) if ended else (verdict.code, verdict.key, "")
            cause = CellCause(verdict.reason, verdict.code, verdict.key, ended, 0)
            first, before = self.causes.get((outcome, place, values), (replica, cause))
            cause = replace(cause if replica < first else before, trials=before.trials + 1)
            self.causes[outcome, place, values] = min(first, replica), cause

    def needs_replica(self, place: int) -> bool:
        """Return whether another replica of the prompt is expected."""
        return sum(self.counts[4 * place : 4 * place + 4]) < self.expected[place]

    def is_newly_decided(self) -> bool:
        """Return whether all expected verdicts are here."""
        return not self.left

    def note_faults(self, observation: Observation, scenario: Scenario, needs: frozenset[int]) -> None:
        """Note whether a needed injection was met in this trial, and if not, how close it came."""
        # One met fault proves the cell, so the rest is only explanation. The explanation keeps the closest approach
        # over all trials: broken, then hidden by another fault, then without effect, then called, then not called. Ties
        # are broken by the text itself (max), never by which trial came first.
        for fault in observation.ledger:
            if fault.index in needs:
                if fault.effect == "met":
                    self.met = True
                    return
                self._note_fired(fault)
        if observation.error and (broken := observation.broken_fault):
            self.near, self.detail = unmet.BROKEN, broken if self.near < unmet.BROKEN else max(self.detail, broken)
        if self.near > unmet.CALLED:
            return
        placed = [scenario.injections[i] for i in sorted(needs)]
        if unmet.has_target_call(placed, observation.calls):  # an order that does not depend on which trial came first
            arguments = next((text for i, text in sorted(observation.unmatched.items()) if i in needs), "")
            self.near, self.detail = (
                unmet.CALLED,
                arguments if self.near < unmet.CALLED else max(self.detail, arguments),
            )
        elif self.near == unmet.NOT_CALLED:
            self.detail = max(self.detail, unmet.describe_other_calls(placed, observation.calls))
            self.requests = self.requests or any(unmet.split_call(name)[0] == "http" for name in observation.calls)

    def _note_fired(self, fault: FaultMet) -> None:
        """Note a fault that fired and was not met; the stored reason does not depend on the order of trials."""
        near = unmet.ERASED if fault.effect == "erased" else unmet.NO_EFFECT
        if self.near == unmet.BROKEN:
            return
        if near > self.near:
            self.near, self.detail = near, ""
        self.detail = max(self.detail, fault.note)

    def decide(self, how: Aggregation, scenario: Scenario, needs: frozenset[int], same: dict[Tries, Tries]) -> Decision:
        """Return the cell by its verdicts so far; missing verdicts count as undecided.

        `same` interns the tries of all cells, so equal ones are stored once.
        """
        counts, met = self.counts, self.met
        if len(counts) == 4 and counts[PASS] == 1 == self.expected[0] and (met or not needs):
            # One prompt, one replica, passed: most cells of a large matrix, which take a tenth less time for it.
            return Decision("pass", passes=1, met=met, simulated=self.simulated, concurrent=self.concurrent)
        failed, undecided, broken, flaky, pairs = self._decide_prompts(how)
        outcome: Outcome = "fail" if failed else "error" if broken else "unproven" if undecided else "pass"
        # A single failed prompt fails the cell, and an error outranks a prompt that is merely unproven: somebody has to
        # repair the former, while the latter may only need more trials.
        decisive = failed if outcome == "fail" else undecided
        why = self._find_reason(outcome, decisive)
        causes = self._collect_causes(outcome, decisive) if len(self.causes) > 1 else ()
        if outcome == "pass" and needs and not met and self.near == unmet.BROKEN:
            # A harness error says nothing about the agent and is not random.
            why = CellCause(self.detail, "fault-broke", (compute_fingerprint(self.detail),))
            outcome, causes = "error", ()
        elif outcome == "pass" and needs and not met:
            why = unmet.explain_unmet(scenario, needs, self.near, self.detail, requests=self.requests)
            outcome, causes = "unproven", ()
        tries = tuple(sorted(pairs.items()))
        return Decision(
            outcome,
            why,
            passes=sum(counts[PASS::4]),
            fails=sum(counts[FAIL::4]),
            errors=sum(counts[ERROR::4]),
            unproven=sum(counts[UNPROVEN::4]),
            flaky=flaky,
            met=met,
            simulated=self.simulated,
            concurrent=self.concurrent,
            failed=failed,
            undecided=undecided,
            tries=same.setdefault(tries, tries),
            causes=causes,
        )

    def _decide_prompts(self, how: Aggregation) -> tuple[int, int, bool, bool, Counter[tuple[int, int]]]:
        """Return the bits of failed and of undecided prompts, whether one is an error, and whether one is flaky."""
        failed = undecided = 0
        broken = flaky = False
        pairs: Counter[tuple[int, int]] = Counter()
        for place, n in enumerate(self.expected):
            if not n:
                continue
            outcome, passes, fails = self._decide_prompt(place, how)
            failed |= (outcome == "fail") << place
            undecided |= (outcome in ("error", "unproven")) << place
            broken |= outcome == "error"
            flaky |= bool(passes and fails)
            if n > 1 and self.keeps_tries:
                # Only the counts are kept, not the verdicts: pass^k needs no more, and a matrix of a million cells has
                # few different pairs, which `decide` stores once.
                pairs[passes, passes + fails] += 1
        return failed, undecided, broken, flaky, pairs

    def _decide_prompt(self, place: int, how: Aggregation) -> tuple[Outcome, int, int]:
        """Return the outcome of a prompt, its passes and its fails."""
        n, (passes, fails, errors, _) = self.expected[place], self.counts[4 * place : 4 * place + 4]
        return decide_prompt(passes, fails, errors, n, count_needed(how, n)), passes, fails

    def _find_reason(self, outcome: Outcome, prompts: int) -> CellCause:
        """Return the reason of the first deciding prompt, given as bits."""
        if outcome == "pass":
            return unmet.NO_REASON
        if ordered := self._sort_causes(outcome, prompts):
            return ordered[0][1]
        total = sum(self.expected)
        return CellCause(
            f"{self.left} of {total} trials did not run" if total > 1 else "the trial did not run", "not-run"
        )

    def _sort_causes(self, outcome: Outcome, prompts: int) -> list[tuple[CauseValues, CellCause]]:
        """Return the causes of an outcome in the deciding prompts, in plan order, each with its trials."""
        causes = [
            (place, replica, values, cause)
            for (kind, place, values), (replica, cause) in self.causes.items()
            if kind == outcome and prompts >> place & 1
        ]
        return [(values, cause) for _, _, values, cause in sorted(causes, key=lambda one: one[:2])]

    def _collect_causes(self, outcome: Outcome, prompts: int) -> tuple[CellCause, ...]:
        """Return all causes, if there are several; most failing cells have one, and store none here."""
        causes: dict[CauseValues, CellCause] = {}
        for values, cause in self._sort_causes(outcome, prompts):
            first = causes.setdefault(values, replace(cause, trials=0))
            causes[values] = replace(first, trials=first.trials + cause.trials)
        return tuple(islice(causes.values(), CAUSES_KEPT)) if len(causes) > 1 else ()
