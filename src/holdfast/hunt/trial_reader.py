"""What a judged trial of a hunt says about its plan."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from holdfast.hunt.outcomes import Failure, PlanOutcome
from holdfast.hunt.points import Points
from holdfast.model.codec import digest
from holdfast.model.judged import CallSite, JudgedTrial
from holdfast.model.scenario import PLANES, Scenario
from holdfast.model.spec import Spec
from holdfast.plan import get_traits


class TrialReader:
    """Reads trials by the rules of the spec: which failures count, and which calls changed something."""

    def __init__(self, spec: Spec, named: Sequence[str]) -> None:
        """`named`: rules that are hunted for by name."""
        self._named = named
        self._timed = {rule.id for rule in spec.invariants if get_traits(rule).reads == "latency"}
        self._failing = {rule.id: PLANES[rule.when] for rule in spec.invariants if rule.when in PLANES}
        self._deeds = [glob for rule in spec.invariants for glob in _list_write_tools(spec, rule.id)]
        """Tools that rules about deeds name. To most other tools a call is only a question."""

    def read_outcome(self, points: Points, scenario: Scenario, one: JudgedTrial) -> PlanOutcome:
        """Return what the trial of this scenario says about the plan of its faults."""
        plan, _ = points.build_plan(scenario)
        met, reached = points.read_outcome(scenario, one)
        gave_up = one.ending != "answered" and points.is_lasting(met) and not self._may_have_written(one)
        left_out = self._timed - set(self._named)
        # A rule about failing tools or models says nothing where these were only late.
        left_out |= {rule for rule, planes in self._failing.items() if not points.disturbs(met, planes)}
        verdicts = [v for v in one.verdicts if v.rule not in left_out]
        failed = (v for v in verdicts if v.outcome == "fail" and (not gave_up or v.rule in self._named))
        failures = tuple(dict.fromkeys(Failure(v.rule, v.code) for v in failed))
        failing = {failure.rule for failure in failures}
        outcomes = {v.outcome for v in verdicts}
        steps = points.count_steps(met, one)
        # A trial in which a rule failed because the agent gave up is not a cause, but it did not hold either.
        has_held = "pass" in outcomes and "error" not in outcomes and not (gave_up and "fail" in outcomes)
        judged = bool(failures) or has_held
        broken = tuple(sorted(collect_rule_errors(one)))
        rules = {v.rule for v in verdicts if v.outcome == "unproven" or (v.outcome == "fail" and v.rule not in failing)}
        unproven = tuple(sorted(rules))
        silent = gave_up and not failures
        return PlanOutcome(plan, met, reached, failures, describe_shape(one), silent, steps, judged, broken, unproven)

    def list_writes(self, one: JudgedTrial, *, certain: bool = False) -> list[int]:
        """Return the calls that changed something: HTTP calls, and calls of tools that rules name. If no rule names a
        tool, every tool counts, unless `certain`.
        """
        return [number for number in one.writes if self._is_change(one.calls[number], certain)]

    def _may_have_written(self, one: JudgedTrial) -> bool:
        """Whether the agent changed something, or may have."""
        return bool(one.statements) or any(self._is_change(one.calls[number]) for number in one.arrived)

    def _is_change(self, call: CallSite, certain: bool = False) -> bool:
        named = any(fnmatchcase(call.target, glob) for glob in self._deeds)
        return call.plane == "http" or named or not (self._deeds or certain)


def collect_rule_errors(one: JudgedTrial) -> set[str]:
    """Return the rules whose checks ended in an error."""
    return {verdict.rule for verdict in one.verdicts if verdict.outcome == "error"}


def describe_shape(one: JudgedTrial) -> str:
    """Return a key that is equal for trials that went the same way: their calls, their end and their verdicts."""
    calls = [f"{call.plane} {call.target}" for call in one.calls]
    codes = [f"{verdict.rule} {verdict.outcome} {verdict.code}" for verdict in one.verdicts]
    return digest("\n".join((one.ending, *calls, *codes)).encode())


def _list_write_tools(spec: Spec, rule: str) -> list[str]:
    """Return the tools that a rule about deeds names."""
    traits = get_traits(spec.get_invariant(rule))
    return [name for _, name in traits.tools] if traits.judges_deeds else []
