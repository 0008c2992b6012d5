"""The result of a hunt, in the format of `hunt.json` and `holdfast hunt --json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import starmap
from shlex import quote
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.hunt.evidence import STEP_FAILS
from holdfast.hunt.outcomes import Count, Coverage, Failure, FaultCause, Plan, PointState, list_bits
from holdfast.hunt.planner import HuntPlanner, TaskHunt, Tried
from holdfast.hunt.points import describe_fault
from holdfast.hunt.shrink import is_stronger
from holdfast.model.codec import to_builtins
from holdfast.model.scenario import Scenario
from holdfast.model.score import CostEstimate
from holdfast.model.spec import Spec
from holdfast.spec.rules.fault_entry import write_faults

HuntStop: TypeAlias = Literal["done", "trials", "time", "cost", "interrupted", "broken"]
CALM_FAILS = "hunt-calm-fails"
"""The code of the error that a rule fails without any fault."""
_ATTENTION: tuple[PointState, ...] = ("failed", "open", "held", "infeasible")
SEVERITIES = ("critical", "high", "medium", "low")


class HuntedCause(Struct, frozen=True):
    """A minimal set of faults that breaks rules, with a trial that shows it."""

    id: str
    rules: tuple[str, ...]
    code: str
    faults: tuple[dict[str, Any], ...]
    failed: int
    runs: int
    calm_failed: int
    calm_runs: int
    scenario: dict[str, Any]
    """As it is written in a chaos_matrix."""
    trial: str
    known: bool
    reason: str = ""
    """Why the first rule failed in that trial."""
    prompt: str = ""
    prompts: tuple[str, ...] = ()
    """All that were asked when these faults broke rules; the counts are those of all together."""
    steps: tuple[dict[str, Any], ...] = ()
    """How the faults of a failed trial were reduced to these: each plan that was tried."""
    live_failed: int = 0
    live_runs: int = 0
    also: tuple[tuple[dict[str, Any], ...], ...] = ()
    """Stronger faults at the same calls that break one of these rules in the same way."""
    params: dict[str, Any] = {}
    """Of the trial that shows it, if the spec has several sets."""
    shrunk_trial: str = ""
    """The failed trial that was reduced, if it asks what the spec does not: no other hunt can try the cause."""

    def write_command(self, spec: str) -> str:
        """Return the command that reproduces it."""
        if self.shrunk_trial:
            return f"holdfast shrink {self.shrunk_trial}"
        return f"holdfast hunt {quote(spec)} --cause {self.id}"


class GaveUp(Struct, frozen=True):
    """Faults under which the agent gave no answer and wrote nothing."""

    faults: tuple[dict[str, Any], ...]
    trial: str


class SiteRow(Struct, frozen=True):
    """A call site, and the state of each mode that was hunted there."""

    plane: str
    target: str
    on_call: int
    states: dict[str, PointState]


class HuntResult(Struct, frozen=True):
    """`hunt.json`."""

    format: int
    trials: int
    stopped: HuntStop
    causes: tuple[HuntedCause, ...]
    fixed: tuple[str, ...]
    flaky: tuple[HuntedCause, ...]
    gave_up: tuple[GaveUp, ...]
    coverage: Coverage
    matrix: tuple[SiteRow, ...]
    notes: tuple[str, ...] = ()
    met: int = 0
    """Trials in which a fault was met."""
    not_met: tuple[str, ...] = ()
    """Known causes that did not fail, but whose faults were not all met, or not judged: they count as not fixed."""
    only_known: bool = False
    """Only causes of earlier hunts were tried, so the coverage says nothing."""
    untried: tuple[str, ...] = ()
    """Known causes that were not tried: no prompt of the spec is theirs, or the hunt ended before them."""
    orphaned: tuple[str, ...] = ()
    """Those of them whose prompt is no longer in the spec."""

    retired: tuple[str, ...] = ()
    """Known causes whose prompt is no longer in the spec and that break no rule with its present prompts."""
    cost: CostEstimate | None = None
    """What the calm trials cost, and what it meant for the budget; None if no live model was asked."""
    refused: str = ""
    """The code of the error that kept the hunt from starting; the last note says why."""
    unexplained: tuple[str, ...] = ()
    """Rules that failed in a trial, with or without faults, and that neither a cause nor a flaky one breaks."""
    shard: str = ""
    """`1/4`: the trials are those of one shard; `holdfast merge` decides."""

    @property
    def unproven(self) -> tuple[str, ...]:
        """Known causes of which the hunt cannot say whether they still fail."""
        flaky = tuple(one.id for one in self.flaky if one.known) if self.only_known else ()
        return (*self.untried, *self.not_met, *flaky)

    @property
    def exit_code(self) -> int:
        """As `holdfast hunt` exits."""
        if self.stopped == "interrupted":
            return 2
        if self.refused:
            return 4 if self.refused == CALM_FAILS else 5
        if self.causes:
            return 1
        if self.stopped == "broken":
            return 3
        if self.shard:
            return 0  # what is open here is for the other shards
        if self.only_known:
            return 0 if (self.fixed or self.retired) and not self.unproven else 5
        return 5 if self.coverage.points.open or self.unproven or self.unexplained or not self.met else 0


def build_result(planner: HuntPlanner, spec: Spec, trials: int, stopped: HuntStop) -> HuntResult:
    """Build the result of the trials so far."""
    hunts = planner.hunts
    causes = _sort_causes(spec, merge_causes(c for h in hunts for c in _build_causes(h, collect_causes(planner, h))))
    if planner.options.shrink:
        prompts = {task.prompt for task in spec.tasks}
        trial = planner.options.failed_trial
        causes = [one if one.prompt in prompts else replace(one, shrunk_trial=trial) for one in causes]
    failing = {one.id for one in causes}
    retired = tuple(_find_retired(planner, failing))
    settled = {*failing, *retired}
    fixed = (hunt.known[plan] for hunt in hunts for plan in hunt.search.fixed if plan in hunt.known)
    untried = tuple(_find_untried(planner, settled))
    flaky = _sort_causes(spec, merge_causes(c for h in hunts for c in _build_causes(h, _collect_flaky(planner, h))))
    explained = {rule for one in (*causes, *flaky) for rule in one.rules}
    unexplained = {rule: counts for rule, counts in _count_failures(planner).items() if rule not in explained}
    return HuntResult(
        format=1,
        trials=trials,
        stopped=stopped,
        causes=tuple(causes),
        fixed=tuple(one for one in dict.fromkeys(fixed) if one not in settled and one not in planner.options.orphans),
        not_met=tuple(_find_not_met(planner, settled)),
        flaky=tuple(flaky),
        gave_up=tuple(one for hunt in hunts for one in _collect_gave_up(hunt)),
        coverage=_sum_coverage(hunts),
        matrix=tuple(row for hunt in hunts for row in _build_rows(hunt)),
        notes=(*_write_notes(planner, settled), *starmap(_describe_unexplained, unexplained.items())),
        met=sum(bool(tried.outcome.met) for hunt in hunts for tried in hunt.tried),
        only_known=planner.options.only_known or bool(planner.options.shrink),
        untried=untried,
        orphaned=tuple(one for one in untried if one in planner.options.orphans),
        retired=retired,
        unexplained=tuple(unexplained),
        shard=str(planner.shard or ""),
    )


def _count_failures(planner: HuntPlanner) -> dict[str, tuple[int, int, int]]:
    """Return, by rule, how many trials failed it, how many of these were calm, and how many trials there were."""
    outcomes = [tried.outcome for hunt in planner.hunts for tried in hunt.tried]
    counts = dict[str, tuple[int, int, int]]()
    for outcome in outcomes:
        for rule in {failure.rule for failure in outcome.failures}:
            failed, calm, _ = counts.get(rule, (0, 0, 0))
            counts[rule] = failed + 1, calm + (outcome.plan == 0), len(outcomes)
    return counts


def _describe_unexplained(rule: str, counts: tuple[int, int, int]) -> str:
    failed, calm, trials = counts
    return f"{rule} failed in {failed} of {trials} trials ({calm} of them calm), and no set of faults is the cause"


def collect_causes(planner: HuntPlanner, hunt: TaskHunt) -> Sequence[FaultCause]:
    """Return the causes that the search found; if only known causes were tried, those that failed again."""
    if not planner.options.only_known:
        return _keep_weakest(hunt)
    return [one for one in _count_known_failures(hunt) if _fails_again(planner, one)]


def _collect_flaky(planner: HuntPlanner, hunt: TaskHunt) -> Sequence[FaultCause]:
    if not planner.options.only_known:
        return hunt.search.flaky
    again = {one.points for one in collect_causes(planner, hunt)}
    return [one for one in _count_known_failures(hunt) if one.points not in again]


def _count_known_failures(hunt: TaskHunt) -> Iterator[FaultCause]:
    """Yield each known cause with how often it broke each rule, and how often calm trials did."""
    calm = hunt.find_runs(0)
    for plan in hunt.known:
        runs = [one for one in hunt.find_runs(plan) if not plan & ~one.met]
        for failure in dict.fromkeys(failure for one in runs for failure in one.failures):
            failed, calm_failed = (sum(failure in one.failures for one in some) for some in (runs, calm))
            yield FaultCause(plan, failure, failed, len(runs), calm_failed, len(calm))


def _fails_again(planner: HuntPlanner, one: FaultCause) -> bool:
    """Whether a known cause still fails: with noise, twice and more often than calm. An earlier hunt has tested it."""
    if not planner.noisy:
        return True
    return one.failed >= STEP_FAILS and one.failed * one.calm_runs > one.calm_failed * one.runs


def _find_untried(planner: HuntPlanner, settled: Set[str]) -> list[str]:
    done = {*settled, *(name for name in _find_tried(planner) if name not in planner.options.orphans)}
    return list(dict.fromkeys(name for one in planner.options.known if (name := one.scenario.name) not in done))


def _find_tried(planner: HuntPlanner) -> set[str]:
    """Return the known causes that were tried with every prompt that they are to be tried with."""
    runs = [(name, bool(hunt.find_runs(plan))) for hunt in planner.hunts for plan, name in hunt.known.items()]
    return {name for name, _ in runs} - {name for name, tried in runs if not tried}


def _find_retired(planner: HuntPlanner, failing: Set[str]) -> list[str]:
    """Return the orphans that every prompt of the spec met and none failed by: an unmet fault proves nothing."""
    if not planner.options.replay_orphans:
        return []
    tried = _find_tried(planner)
    open_names = {name for hunt in planner.hunts for plan, name in hunt.known.items() if plan not in hunt.search.fixed}
    return [one for one in planner.options.orphans if one in tried and one not in open_names and one not in failing]


def _keep_weakest(hunt: TaskHunt) -> list[FaultCause]:
    """Return the causes without stronger forms of others: one bug may fail under an error and under a timeout of a
    call.
    """
    points, weakest = hunt.search.points, list[FaultCause]()

    def strength(one: FaultCause) -> int:
        return sum(points[number].rung for number in list_bits(one.points))

    for one in sorted(hunt.search.causes, key=strength):
        if one.points in hunt.known or not any(_is_form_of(hunt, one, other) for other in weakest):
            weakest.append(one)
    return weakest


def _is_form_of(hunt: TaskHunt, one: FaultCause, weaker: FaultCause) -> bool:
    """Whether the cause has stronger faults at the calls of a weaker one, and fails in the same way."""
    points = hunt.search.points
    sites = [{points[number].site for number in list_bits(cause.points)} for cause in (one, weaker)]
    return (
        one.failure == weaker.failure
        and one.points != weaker.points
        and sites[0] == sites[1]
        and is_stronger(points, one.points, weaker.points)
    )


def _find_not_met(planner: HuntPlanner, settled: Set[str]) -> Iterator[str]:
    """Known causes that were tried and neither failed nor count as fixed."""
    for hunt in planner.hunts:
        tried = [plan for plan in hunt.search.undecided if plan in hunt.search.trials.of_plan]
        yield from (name for plan in tried if (name := hunt.known.get(plan)) and name not in settled)


def collect_rules(failures: Iterable[Failure]) -> set[str]:
    """Return the rules of some failures."""
    return {failure.rule for failure in failures}


def write_scenario(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as it is written in a chaos_matrix."""
    return {"name": scenario.name, **write_faults(scenario.injections)}


def _build_causes(hunt: TaskHunt, found: Sequence[FaultCause]) -> Iterator[HuntedCause]:
    """Yield one cause for each set of faults, however many rules it breaks."""
    by_points: dict[Plan, list[FaultCause]] = {}
    for cause in found:
        by_points.setdefault(cause.points, []).append(cause)
    for points, causes in by_points.items():
        forms = {one.points for one in hunt.search.forms if any(_is_form_of(hunt, one, cause) for cause in causes)}
        worst = max(causes, key=lambda one: one.failed)
        scenario = hunt.points.build_scenario(points)
        example = _find_example(hunt, points, worst.failure)
        yield HuntedCause(
            id=scenario.name,
            rules=tuple(one.failure.rule for one in causes),
            code=worst.failure.code,
            faults=_describe_faults(hunt, points),
            failed=worst.failed,
            runs=worst.runs,
            calm_failed=worst.calm_failed,
            calm_runs=worst.calm_runs,
            scenario=write_scenario(scenario),
            trial="" if example is None else example.trial,
            known=points in hunt.known,
            reason="" if example is None else example.reasons.get(worst.failure.rule, ""),
            prompt=hunt.task.prompt,
            params=hunt.params,
            prompts=(hunt.task.prompt,),
            steps=tuple(
                {"faults": _describe_faults(hunt, plan), "failed": failed, "runs": runs}
                for plan, failed, runs in hunt.search.shrink_steps.get((points, worst.failure), ())
            ),
            also=tuple(_describe_faults(hunt, plan) for plan in sorted(forms - by_points.keys())),
        )


def merge_causes(causes: Iterable[HuntedCause]) -> Iterable[HuntedCause]:
    """Return one cause for each set of faults, however many prompts it breaks rules with."""
    by_id: dict[str, HuntedCause] = {}
    for one in causes:
        first = by_id.get(one.id)
        by_id[one.id] = one if first is None else _join_causes(first, one)
    return by_id.values()


def _join_causes(first: HuntedCause, other: HuntedCause) -> HuntedCause:
    counts = ("failed", "runs", "calm_failed", "calm_runs")
    return replace(
        first,
        rules=tuple(dict.fromkeys((*first.rules, *other.rules))),
        prompts=tuple(dict.fromkeys((*first.prompts, *other.prompts))),
        known=first.known or other.known,
        **{name: getattr(first, name) + getattr(other, name) for name in counts},
    )


def _find_example(hunt: TaskHunt, points: Plan, failure: Failure) -> Tried | None:
    """Return a trial that shows the cause: of these faults alone, if there is one."""
    failed = [one for one in hunt.tried if failure in one.outcome.failures and not points & ~one.outcome.met]
    return min(failed, key=lambda one: one.outcome.plan.bit_count(), default=None)


def _describe_faults(hunt: TaskHunt, plan: Plan) -> tuple[dict[str, Any], ...]:
    return tuple(describe_fault(one) for one in hunt.points.build_scenario(plan).injections)


def _sort_causes(spec: Spec, causes: Iterable[HuntedCause]) -> list[HuntedCause]:
    """Sort the causes: the worst broken rule first, then the fewest faults."""
    severity = {rule.id: SEVERITIES.index("critical" if rule.critical else rule.severity) for rule in spec.invariants}
    return sorted(causes, key=lambda one: (min(severity.get(rule, 9) for rule in one.rules), len(one.faults)))


def _collect_gave_up(hunt: TaskHunt) -> Iterator[GaveUp]:
    listed: set[Plan] = set()
    for tried in hunt.tried:
        met = tried.outcome.met
        if tried.outcome.gave_up and met.bit_count() == 1 and met not in listed:
            listed.add(met)
            yield GaveUp(_describe_faults(hunt, met), tried.trial)


def _sum_coverage(hunts: Sequence[TaskHunt]) -> Coverage:
    coverages = [hunt.search.closed.count_coverage() for hunt in hunts]
    left_out = sum(hunt.left_out for hunt in hunts)

    def total(counts: Sequence[Count], extra: int = 0) -> Count:
        sums = [sum(values) for values in zip(*(to_builtins(one).values() for one in counts), strict=True)] or [0] * 6
        one = Count(*sums)
        return Count(one.total + extra, one.held, one.failed, one.infeasible, one.open + extra, one.alike)

    return Coverage(total([one.points for one in coverages], left_out), total([one.pairs for one in coverages]))


def _build_rows(hunt: TaskHunt) -> Iterator[SiteRow]:
    closed = hunt.search.closed
    rows: list[dict[str, PointState]] = [{} for _ in hunt.points.sites]
    for at, one in enumerate(hunt.points.all):
        mode, states = one.injection.mode + (" (lasting)" if one.how.lasting else ""), rows[one.site]
        # A mode may have several settings: the one that deserves most attention is shown.
        states[mode] = min(closed.get_point_state(at), states.get(mode, "infeasible"), key=_ATTENTION.index)
    for site, states in zip(hunt.points.sites, rows, strict=True):
        yield SiteRow(site.call.plane, site.call.target, site.call.ordinal, states)


def _write_notes(planner: HuntPlanner, settled: Set[str]) -> Iterator[str]:
    if planner.shard is not None:
        yield f"shard {planner.shard}: faults and pairs of the other shards are open until holdfast merge joins them"
    if planner.unstable:
        unstable_calls = ", ".join(f"{one.plane} {one.target} #{one.ordinal}" for one in planner.unstable[:5])
        yield f"calm runs differ in their calls ({unstable_calls}): a fault at such a call may not be met"
    left_out = sum(hunt.left_out for hunt in planner.hunts)
    if left_out:
        yield f"faults not tried: {left_out}, because the agent makes more calls than one hunt follows"
    tried = {one.injection.mode for hunt in planner.hunts for one in hunt.points.all}
    for mode in planner.options.sweep if planner.hunts else ():
        if mode not in tried:
            yield f"{mode} was not tried: no write of this agent can meet it (the agent is killed only in a sandbox)"
    if planner.options.shrink and planner.done and not any(hunt.search.causes for hunt in planner.hunts):
        rule, code = planner.options.failure
        if planner.fails_in_calm(planner.hunts[-1]):
            yield f"the prompt of this trial breaks {rule} even without faults: no fault is the cause"
        elif not any(hunt.search.flaky for hunt in planner.hunts):
            yield f"the trial did not fail again: its faults did not break {rule} [{code}]"
    for name in _find_not_met(planner, settled):
        yield (
            f"{name} did not fail, but its faults were not all met and judged: it does not count as fixed. "
            "If the agent no longer makes that call, delete the cause from .holdfast/hunts"
        )
    for rule, count in sorted(planner.rule_errors.items()):
        yield f"the check of {rule} ended in an error (trials: {count}), which proves nothing"
    silent = sum(not one.outcome.judged and bool(one.outcome.met) for hunt in planner.hunts for one in hunt.tried)
    if silent:
        yield f"no rule was judged in {silent} trials with faults: faults that were met only there stay open"
    for name in _find_untried(planner, settled):
        orphan = "cannot be replayed: its prompt or its rule is no longer in this file; hunt again, or delete it"
        yield f"{name} {orphan if name in planner.options.orphans else 'was not tried: the hunt ended first'}"
    if planner.noisy and planner.options.only_known:
        yield f"the agent is not deterministic: a known cause fails again if {STEP_FAILS} trials fail, more than calm"
    elif planner.noisy:
        yield "the agent is not deterministic: a cause fails more often than calm in several trials; the rest is flaky"
