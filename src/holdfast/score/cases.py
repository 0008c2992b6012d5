"""Cases: the replicas of one task in one scenario with one set of params, combined to a status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.score import Case, Replica, Status
from holdfast.model.spec import Aggregation, Spec, Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.when import meeting
from holdfast.plan import Plan
from holdfast.score.combine import needed, settle
from holdfast.score.composite import SLACK, composite

_Key = tuple[str, Task, int]
UNMET = "passed, but the fault was never met: nothing is proven"
"""Why a rule, and so its case, is unproven."""


class Cases:
    """Takes the trials that serve every rule, in any order."""

    def __init__(self, spec: Spec, plan: Plan) -> None:
        self._spec = spec
        self._plan = plan
        self._replicas: dict[_Key, dict[int, Replica]] = {}
        self._met: defaultdict[_Key, set[int]] = defaultdict(set)
        """By case: the faults that a trial of it met, by their place in the scenario."""
        self._needs: dict[str, dict[str, frozenset[int]]] = {}
        """By scenario and rule: the faults of which one must be met."""
        self._scenarios = {scenario.name: scenario for scenario in plan.scenarios}

    def add(self, trial: Trial, seen: Observation, verdicts: Iterable[Verdict]) -> None:
        """A trial that was judged; one that serves a single rule is no part of a case."""
        own = self._spec.cell_rules
        rules = [rule for rule in self._plan.rules(trial) if rule.id not in own and not rule.probes]
        if trial.kind != "contract" or trial.invariant != "*" or not rules:
            return
        key = (trial.scenario, trial.task, self._plan.params_index(trial.params))
        by_rule = {verdict.invariant: verdict for verdict in verdicts}
        self._met[key] |= {fault.index for fault in seen.ledger if fault.effect == "met"}
        if trial.scenario not in self._needs:
            weather = self._scenarios[trial.scenario]
            self._needs[trial.scenario] = {rule.id: meeting(rule.when, weather) for rule in rules}
        one = composite(trial, rules, by_rule, seen.forbidden, self._spec.scoring)
        self._replicas.setdefault(key, {})[trial.replica] = one

    def all(self) -> Iterator[Case]:
        """Every case that was begun, in plan order."""
        scenarios = {scenario.name: n for n, scenario in enumerate(self._plan.scenarios)}
        tasks = {task: n for n, task in enumerate(self._spec.tasks)}
        for key in sorted(self._replicas, key=lambda k: (scenarios[k[0]], tasks.get(k[1], 0), k[2])):
            scenario, task, params = key
            replicas = [one for _, one in sorted(self._replicas[key].items())]
            expected = self._expected(len(replicas))
            case = _case(scenario, task, self._spec.params[params], replicas, expected, self._spec)
            yield _proven(case, self._unmet(key))

    def _unmet(self, key: _Key) -> tuple[str, ...]:
        """The rules of which no trial of the case met a fault that they need; calm ones need none."""
        met = self._met[key]
        return tuple(rule for rule, needs in self._needs[key[0]].items() if needs and not needs & met)

    def _expected(self, there: int) -> int:
        """How many replicas a case waits for; where trials were selected, those."""
        return max(there, self._spec.replicas) if self._plan.whole else there


def _proven(case: Case, unmet: tuple[str, ...]) -> Case:
    """The case as it is with rules whose faults were not met: what they say in its favour does not count."""
    if not unmet or case.status != "pass":
        return replace(case, unmet=unmet)
    reason = f"{', '.join(unmet)}: {UNMET}"
    undecided = (
        replace(one, status="error", composite=None, reason=reason) if one.status == "pass" else one
        for one in case.replicas
    )
    return replace(
        case, status="error", composite=None, unmet=unmet, unproven=True, replicas=tuple(undecided), reason=reason
    )


def _case(
    scenario: str, task: Task, params: dict[str, object], replicas: Sequence[Replica], expected: int, spec: Spec
) -> Case:
    status, reason = _status(replicas, expected, spec.scoring.replica_aggregation, spec.scoring.pass_threshold)
    known = [one.composite for one in replicas if one.composite is not None]
    return Case(
        scenario=scenario,
        status=status,
        prompt=task.prompt,
        params=dict(params),
        flaky={"pass", "fail"} <= {one.status for one in replicas},
        composite=sum(known) / len(known) if known and len(known) == len(replicas) else None,
        replicas=tuple(replicas),
        reason=reason,
    )


def _status(
    replicas: Sequence[Replica], expected: int, how: Aggregation, threshold: float | None
) -> tuple[Status, str]:
    count = {status: sum(one.status == status for one in replicas) for status in ("pass", "fail", "error")}
    if how.kind == "mean":
        return _mean(replicas, expected, 1.0 if threshold is None else threshold)
    outcome = settle(count["pass"], count["fail"], count["error"], expected, needed(how, expected))
    if outcome == "pass":
        return "pass", ""
    first = next((one.reason for one in replicas if one.status == outcome), "")
    if outcome == "fail":
        shown = f"{count['pass']} of {expected} replicas passed: {first}" if expected > 1 else first
        return "fail", shown
    return "error", first or f"{expected - len(replicas)} of {expected} replicas did not run"


def _mean(replicas: Sequence[Replica], expected: int, threshold: float) -> tuple[Status, str]:
    """The mean of the composites against the threshold; an unknown one leaves it open unless it cannot matter."""
    known = [one.composite for one in replicas if one.composite is not None]
    low, high = sum(known) / expected, (sum(known) + expected - len(known)) / expected
    if low >= threshold - SLACK:
        return "pass", ""
    if high < threshold - SLACK:
        first = next((one.reason for one in replicas if one.reason), "")
        return (
            "fail",
            f"the mean composite is {high if len(known) < expected else low:.3f}, below {threshold:g}: {first}",
        )
    return "error", next((one.reason for one in replicas if one.status == "error"), "not every replica ran")
