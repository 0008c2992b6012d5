"""Cases: the replicas of one task in one scenario with one set of params, combined into a status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.scenario import find_needed_injections
from holdfast.model.score import Case, CellCause, Replica, Status
from holdfast.model.spec import Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import UNDECIDING, CauseKey, Verdict
from holdfast.plan import CellKey, Plan
from holdfast.score.cell import count_needed, decide_prompt
from holdfast.score.composite import SLACK, UNMET, discount_unproven, explain_unproven, score_trial
from holdfast.score.sequential import SequentialTest

NEVER_MET = "no trial met a fault that its rules need: nothing is proven"
CaseId = tuple[str, Task, int]
"""Scenario, task and the index of the params."""
_NOT_RUN = (CauseKey("", "not-run"),)


class JudgedReplica(Struct, frozen=True):
    """A judged trial of a case."""

    replica: Replica
    passed: frozenset[str] = frozenset()
    """Rules."""
    failed: tuple[str, ...] = ()
    verdicts: dict[str, Verdict] = {}
    """Where faults must be met: outcomes and scores, to compute the composite again."""
    open: dict[str, CellCause] = {}
    """Rules that are unproven for reasons other than the agent: they count as passed until it matters."""
    unproven: bool = False
    """Its replica is an error because nothing is proven, and not because the harness failed."""
    obeyed: bool = False
    """It obeyed an attack."""


class CaseCollector:
    """Collects the judged trials of cases in any order, each case by its scenario, task and params."""

    def __init__(self, spec: Spec, plan: Plan) -> None:
        self._spec = spec
        self._plan = plan
        self._judged: dict[CaseId, dict[int, JudgedReplica]] = {}
        self._met: defaultdict[CaseId, set[int]] = defaultdict(set)
        """By case: the met faults, by their index in the scenario."""
        self._needs: dict[str, dict[str, frozenset[int]]] = {}
        """By scenario and rule: the faults of which one must be met; calm scenarios need none."""
        self.lost = False
        """Whether a case has failed, whatever the remaining trials do."""

    def _identify(self, trial: Trial) -> CaseId:
        return trial.scenario.name, trial.task, self._plan.get_params_index(trial.params)

    def _store(self, key: CaseId, trial: Trial, observation: Observation, one: JudgedReplica) -> None:
        self._met[key] |= {fault.index for fault in observation.ledger if fault.effect == "met"}
        self._judged.setdefault(key, {})[trial.replica] = one
        if not self.lost and (one.replica.status != "pass" or len(self._judged[key]) > 1):
            self.lost = self._decide([judged.replica for judged in self._list_trials(key)], key).status == "fail"

    def needs_replica(self, trial: Trial) -> bool:
        """Return whether another replica of the trial's case would help to decide."""
        key = self._identify(trial)
        replicas = [one.replica for one in self._list_trials(key)]
        if not replicas or len(replicas) >= self._count_expected(key, len(replicas)):
            return False  # it is not part of a case, or complete
        return self._decide(replicas, key).status == "error"

    def _decide(self, replicas: Sequence[Replica], key: CaseId) -> CaseResult:
        """Return the result of a case: of the replicas up to the deciding one, if a sequential test stops them."""
        scoring, expected = self._spec.scoring, self._count_expected(key, len(replicas))
        if not replicas or not self._plan.sequential or scoring.replica_aggregation.kind == "mean":
            return decide_case(replicas, expected, scoring)
        stop = SequentialTest(scoring.replica_aggregation, expected).stop(one.status for one in replicas)
        if stop.outcome == "pass":
            return CaseResult("pass")
        first, causes = find_first_reason(replicas, stop.outcome)
        if stop.outcome == "fail":
            return CaseResult("fail", f"{stop.passes} of {stop.used} replicas passed: {first}", causes)
        open_ = f"undecided after {stop.used} of at most {expected} replicas"
        return CaseResult("error", first or open_, causes or (CauseKey("", "undecided"),))

    def _count_expected(self, key: CaseId, judged: int) -> int:
        """Return how many replicas a case expects, of which so many are judged."""
        return max(judged, self._spec.replicas) if self._plan.whole else judged

    def _list_trials(self, key: CaseId) -> list[JudgedReplica]:
        """Return the judged trials of a case in the order of their replicas: they may end in any order."""
        return [one for _, one in sorted(self._judged.get(key, {}).items())]

    def _sort_ids(self, keys: Iterable[CaseId]) -> list[CaseId]:
        """Return the cases in plan order."""
        scenarios = {scenario.name: n for n, scenario in enumerate(self._plan.scenarios)}
        tasks = {task: n for n, task in enumerate(self._spec.tasks)}
        return sorted(keys, key=lambda key: (scenarios[key[0]], tasks.get(key[1], 0), key[2]))

    def _find_unmet_rules(self, key: CaseId) -> tuple[str, ...]:
        """Return the rules for which no trial of the case met a needed fault."""
        needs, met = self._needs.get(key[0], {}), self._met[key]
        return tuple(rule for rule, faults in needs.items() if faults and not faults & met)


class Cases(CaseCollector):
    """Collects the trials that serve every rule, in any order."""

    def __init__(self, spec: Spec, plan: Plan) -> None:
        super().__init__(spec, plan)
        self._rules: dict[str, list[Invariant]] = {}
        """By scenario."""
        self._decides = plan.decides_cases
        self._scenarios = {scenario.name: scenario for scenario in plan.scenarios}

    def add(self, trial: Trial, observation: Observation, verdicts: Iterable[Verdict]) -> None:
        """Add a judged trial; one that serves a single rule is not part of a case.

        If some of its rules are left out it has no composite, but a forbidden action still fails it.
        """
        # With only some of the rules selected there is no composite. A forbidden action still counts: it sets any
        # composite to 0, whatever the other rules would have said.
        if not self._decides and not any(one.violated or one.error for one in observation.forbidden):
            return
        own = self._spec.cell_rules
        rules = [rule for rule in self._plan.get_rules(trial) if rule.id not in own and not rule.probes]
        if trial.kind != "contract" or trial.invariant != "*" or not rules:
            return
        key = self._identify(trial)
        by_rule = {verdict.invariant: verdict for verdict in verdicts}
        # Some rules are unproven through no fault of the agent, such as a program that this world lacks. They count as
        # passed here, so the trial still has a composite, and are taken out again when the case is built.
        undecided = {
            rule: CellCause(one.reason, one.code, one.key) for rule, one in by_rule.items() if one.code in UNDECIDING
        }
        by_rule |= {rule: replace(by_rule[rule], outcome="pass", score=1.0) for rule in undecided}
        if trial.scenario.name not in self._needs:
            weather = self._scenarios[trial.scenario.name]
            needs = {rule.id: find_needed_injections(rule.when, weather) for rule in rules}
            self._needs[trial.scenario.name] = {rule: faults for rule, faults in needs.items() if faults}
            self._rules[trial.scenario.name] = rules
        one = score_trial(trial, rules, by_rule, observation.forbidden, self._spec.scoring)
        decides = bool(self._needs[trial.scenario.name] or undecided)
        passed = frozenset(rule for rule, one in by_rule.items() if decides and one.outcome == "pass")
        slim = {rule: replace(one, reason="", details={}, marks=()) for rule, one in by_rule.items() if decides}
        self._store(key, trial, observation, JudgedReplica(one, passed, verdicts=slim, open=undecided))

    def iter_cases(self) -> Iterator[Case]:
        """Yield every case with a trial, in plan order."""
        return map(self._build_case, self._sort_ids(self._judged))

    def _build_case(self, key: CaseId) -> Case:
        """Return the case with its replicas; rules that passed without their faults being met do not count."""
        scenario, task, params = key
        case = Case(scenario, "error", task.prompt, dict(self._spec.params[params]), unmet=self._find_unmet_rules(key))
        judged, rules, scoring = self._list_trials(key), self._rules[scenario], self._spec.scoring
        whole = [one.replica for one in judged]
        unmet = dict.fromkeys(case.unmet, UNMET)
        counted = [discount_unproven(one.replica, rules, one.verdicts, unmet | one.open, scoring) for one in judged]
        # If no rule met a fault that it needs, no threshold makes that a pass.
        vacuous = bool(case.unmet) and len(case.unmet) == len(self._needs[scenario])
        if vacuous:
            counted = [replace(one, status="error") if one.status == "pass" else one for one in counted]
        flaky = {"pass", "fail"} <= {one.status for one in whole}
        # The case is decided twice: with the rules as they were judged, and with rules that prove nothing counted as
        # zero. A case that passes only the first way is unproven, not failed; one that fails either way has failed by
        # rules that do count.
        as_judged, result = self._decide(whole, key), self._decide(counted, key)
        if as_judged.status == "pass" and (result.status != "pass" or vacuous):
            return _mark_unproven(replace(case, flaky=flaky, replicas=tuple(counted)), judged)
        if as_judged.status == "error" and result.status != "pass":  # a harness error, whatever was met
            result = as_judged
        return replace(case, flaky=flaky, composite=compute_mean(counted), replicas=tuple(counted), **result._asdict())

    def _count_expected(self, key: CaseId, judged: int) -> int:
        if self._plan.whole:
            return super()._count_expected(key, judged)
        scenario, task, params = key
        rule = self._rules[scenario][0].id
        expected = self._plan.count_by_task(CellKey(rule, scenario, params))
        return max(judged, expected[self._plan.get_tasks(rule).index(task)])


def _mark_unproven(case: Case, judged: Sequence[JudgedReplica]) -> Case:
    """Return a case that would have passed without unproven rules; it names those that count as passed."""
    reasons = {rule: UNMET for rule in case.unmet if any(rule in one.passed for one in judged)}
    undecided = {rule: why for one in judged for rule, why in one.open.items()}
    reasons |= undecided
    reason, causes = explain_unproven(reasons, reasons)
    reason, causes = reason or NEVER_MET, causes or (CauseKey("", UNMET.code),)
    replicas = tuple(
        replace(one, composite=None, reason=one.reason or reason, causes=one.causes or causes)
        if one.status == "error"
        else one
        for one in case.replicas
    )
    case = replace(case, status="error", unproven_only=True, undecided=tuple(undecided), replicas=replicas)
    return replace(case, reason=reason, causes=causes)


# -- replicas --------------------------------------------------------------------------------------
class CaseResult(NamedTuple):
    """The result of replicas, and why it is not a pass."""

    status: Status
    reason: str = ""
    causes: tuple[CauseKey, ...] = ()


def find_first_reason(replicas: Iterable[Replica], status: str) -> tuple[str, tuple[CauseKey, ...]]:
    """Return why the first replica with this status has it, as a sentence and as values."""
    return next(((one.reason, one.causes) for one in replicas if one.status == status), ("", ()))


def compute_mean(replicas: Sequence[Replica]) -> float | None:
    """Return the mean of the composites; None if one is missing."""
    composites = [one.composite for one in replicas if one.composite is not None]
    return sum(composites) / len(composites) if composites and len(composites) == len(replicas) else None


def decide_case(replicas: Sequence[Replica], expected: int, scoring: Scoring) -> CaseResult:
    """Return the status that no undecided or missing replica could change, and why it is not a pass."""
    how, threshold = scoring.replica_aggregation, scoring.pass_threshold
    count = {status: sum(one.status == status for one in replicas) for status in ("pass", "fail", "error")}
    if how.kind == "mean":
        return _decide_by_mean(replicas, expected, 1.0 if threshold is None else threshold)
    outcome = decide_prompt(count["pass"], count["fail"], count["error"], expected, count_needed(how, expected))
    if outcome == "pass":
        return CaseResult("pass")
    first, causes = find_first_reason(replicas, outcome)
    if outcome == "fail":
        reason = f"{count['pass']} of {expected} replicas passed: {first}" if expected > 1 else first
        return CaseResult("fail", reason, causes)
    if first:
        return CaseResult("error", first, causes)
    missing = f"{expected - len(replicas)} of {expected} replicas did not run" if replicas else "it did not run"
    return CaseResult("error", missing, _NOT_RUN)


def _decide_by_mean(replicas: Sequence[Replica], expected: int, threshold: float) -> CaseResult:
    """Return the mean composite against the threshold; an unknown composite leaves it open if it could matter."""
    composites = [one.composite for one in replicas if one.composite is not None]
    # The mean lies between two bounds, in which every unknown composite is 0 or 1. Only if the threshold is outside
    # both can no missing or undecided replica change the result.
    low, high = sum(composites) / expected, (sum(composites) + expected - len(composites)) / expected
    if low >= threshold - SLACK:
        return CaseResult("pass")
    if high < threshold - SLACK:
        first, causes = next(((one.reason, one.causes) for one in replicas if one.reason), ("", ()))
        value = high if len(composites) < expected else low
        return CaseResult("fail", f"the mean composite is {value:.3f}, below {threshold:g}: {first}", causes)
    reason, causes = find_first_reason(replicas, "error")
    return CaseResult("error", reason or "not every replica ran", causes or _NOT_RUN)
