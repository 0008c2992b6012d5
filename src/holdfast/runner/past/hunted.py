"""Reads a stored hunt: its judged trials, and its planner in the state after them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.errors import UserError
from holdfast.model.codec import create_decoder
from holdfast.model.judged import JudgedTrial, JudgingProgress
from holdfast.model.score import Score
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, RunOptions
from holdfast.runner.start import load_stored_spec
from holdfast.store.record import read_observations, read_scenarios, read_trials, read_verdicts
from holdfast.store.rundir import RunDir, read_json

if TYPE_CHECKING:
    from holdfast.hunt.fault_map import MapScore, TrialResult, TriedFaults
    from holdfast.hunt.planner import HuntPlanner

_score = create_decoder(Score)


def build_hunt_planner(run: RunDir, plan: Plan, options: RunOptions) -> HuntPlanner:
    """Return the planner of a hunt, before its first trial."""
    from holdfast.hunt.planner import HuntPlanner  # other runs do not need it

    joined: list[tuple[Trial, JudgedTrial]] = []
    if options.hunt.joined:
        begun, judged = _read_begun(run, plan), read_judged(run, plan)
        joined = [(begun[id], one) for id, one in judged.items()]
    select = options.select
    return HuntPlanner(
        plan.spec, tuple(plan.trials), options.hunt, named=select.invariants, shard=select.shard, joined=joined
    )


def _read_begun(run: RunDir, plan: Plan) -> dict[str, Trial]:
    """Return the trials of a stored run that rules judge, by id."""
    scenarios = read_scenarios(run, plan.spec.scenarios)
    return {one.id: one.build_trial(scenarios) for one in read_trials(run) if one.kind == "contract"}


def read_judged(run: RunDir, plan: Plan, *, keep_errors: bool = False) -> dict[str, JudgedTrial]:
    """Return the judged trials of a stored run, by id. One with a harness error runs again, unless `keep_errors` is
    set.
    """
    from holdfast.hunt.judged_trial import build_judged_trial

    begun = _read_begun(run, plan)
    by_trial: dict[str, dict[str, Verdict]] = {}
    for verdict in read_verdicts(run.get_verdict_file()) if begun else ():
        by_trial.setdefault(verdict.trial, {})[verdict.invariant] = verdict
    judged: dict[str, JudgedTrial] = {}
    for observation in read_observations(run) if begun else ():
        if observation.trial not in begun or (observation.error and not keep_errors):
            continue
        by_rule = by_trial.get(observation.trial, {})
        rules = [rule.id for rule in plan.get_rules(begun[observation.trial])]
        if all(rule in by_rule for rule in rules):
            judged[observation.trial] = build_judged_trial(observation, [by_rule[rule] for rule in rules])
    return judged


def read_tried_faults(runs: Iterable[RunDir]) -> TriedFaults:
    """Read which faults the trials of these runs met, and which rules failed then. Unreadable runs are skipped."""
    from holdfast.hunt.fault_map import TriedFaults

    tried = TriedFaults()
    for run in runs:
        try:
            _add_tried(tried, run)
        except (OSError, UserError):
            continue
    return tried


def _add_tried(tried: TriedFaults, run: RunDir) -> None:
    try:
        written = load_stored_spec(run, run.read_manifest(), None, os.environ)[0].scenarios
    except UserError:
        written = ()  # a variable that it needs is not set: the faults in its ledgers still have targets and modes
    scenarios = read_scenarios(run, written)
    begun = {one.id: one.build_trial(scenarios).scenario for one in read_trials(run)}
    outcomes: dict[str, set[str]] = {}
    for verdict in read_verdicts(run.get_verdict_file()):
        outcomes.setdefault(verdict.trial, set()).add(verdict.outcome)
    for observation in read_observations(run):
        scenario = begun.get(observation.trial)
        if scenario is not None and not observation.error and not (scenario.calm and not observation.ledger):
            own = outcomes.get(observation.trial, set())
            # A trial holds if a rule passed, none failed and no check broke.
            held: TrialResult = "held" if "pass" in own and "error" not in own else "unjudged"
            tried.add(observation, scenario, "failed" if "fail" in own else held)


def read_newest_scores(runs: Iterable[RunDir]) -> Iterator[MapScore]:
    """Yield the score of the newest complete run of each part; `runs` begins with the newest."""
    from holdfast.hunt.fault_map import MapScore

    parts: set[str] = set()
    for run in runs:
        path, ended, part = run.path / "score.json", run.read_end(), run.read_manifest().options.part
        if part in parts or ended is None or not ended.complete or not path.is_file():
            continue
        try:
            score = read_json(path, _score)
        except (OSError, UserError):
            continue
        if score.value is not None:
            parts.add(part)
            yield MapScore(part, run.id, score.value)


def load_hunt(run: RunDir, plan: Plan, options: RunOptions) -> HuntPlanner:
    """Return the planner after it has received every stored trial."""
    planner, known = build_hunt_planner(run, plan, options), read_judged(run, plan, keep_errors=True)
    judged = JudgingProgress()
    while batch := planner.next(judged):
        if not any(trial.id in known for trial in batch):
            break
        judged = JudgingProgress(trials=tuple(known[trial.id] for trial in batch if trial.id in known))
        if len(judged.trials) < len(batch):
            planner.next(judged)  # the round in which the hunt was stopped
            break
    return planner
