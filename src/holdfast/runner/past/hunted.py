"""A stored hunt: its judged trials, and its planner after them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.errors import UserError
from holdfast.model.judged import Judged, JudgedTrial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, RunOptions
from holdfast.store.record import read_observations, read_scenarios, read_trials, read_verdicts
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.hunt.fault_map import TriedFaults
    from holdfast.hunt.planner import HuntPlanner
    from holdfast.model.spec import Spec


def build_hunt_planner(spec: Spec, plan: Plan, options: RunOptions) -> HuntPlanner:
    """The planner of a hunt, before its first trial."""
    from holdfast.hunt.planner import HuntPlanner  # other runs do not need it

    return HuntPlanner(spec, tuple(plan.trials), options.hunt, named=options.select.invariants)


def read_judged(run: RunDir, plan: Plan, *, keep_errors: bool = False) -> dict[str, JudgedTrial]:
    """The judged trials of a stored run, by id. One with a harness error runs again, unless `keep_errors` is set."""
    from holdfast.hunt.sites import judged_trial

    scenarios = read_scenarios(run, plan.spec.scenarios)
    begun = {one.id: one.build_trial(scenarios) for one in read_trials(run) if one.kind == "contract"}
    by_trial: dict[str, dict[str, Verdict]] = {}
    for verdict in read_verdicts(run.get_verdict_file()) if begun else ():
        by_trial.setdefault(verdict.trial, {})[verdict.invariant] = verdict
    judged: dict[str, JudgedTrial] = {}
    for observation in read_observations(run) if begun else ():
        if observation.trial not in begun or (observation.error and not keep_errors):
            continue
        known = by_trial.get(observation.trial, {})
        rules = [rule.id for rule in plan.rules(begun[observation.trial])]
        if all(rule in known for rule in rules):
            judged[observation.trial] = judged_trial(observation, [known[rule] for rule in rules])
    return judged


def read_tried_faults(runs: Iterable[RunDir]) -> TriedFaults:
    """Which faults the trials of these runs met, and which rules failed then. A run that cannot be read is skipped."""
    from holdfast.hunt.fault_map import TriedFaults

    tried = TriedFaults()
    for run in runs:
        try:
            failed = {one.trial for one in read_verdicts(run.get_verdict_file()) if one.outcome == "fail"}
            for observation in read_observations(run):
                if observation.ledger and not observation.error:
                    tried.add(observation, failed=observation.trial in failed)
        except (OSError, UserError):
            continue
    return tried


def look_at_hunt(run: RunDir, plan: Plan, options: RunOptions) -> HuntPlanner:
    """The planner after it has received every stored trial."""
    planner, known = build_hunt_planner(plan.spec, plan, options), read_judged(run, plan, keep_errors=True)
    judged = Judged()
    while batch := planner.next(judged):
        if not any(trial.id in known for trial in batch):
            break
        judged = Judged(trials=tuple(known[trial.id] for trial in batch if trial.id in known))
        if len(judged.trials) < len(batch):
            planner.next(judged)  # the round in which the hunt was stopped
            break
    return planner
