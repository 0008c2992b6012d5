"""Counts what a run would do, without doing it."""

from __future__ import annotations

from typing import TypedDict

from holdfast.model.spec import Invariant
from holdfast.plan.checks import get_traits
from holdfast.runner.consultations import consults_model
from holdfast.runner.conversations import count_user_calls
from holdfast.runner.job import Job
from holdfast.store.id_table import IdTable
from holdfast.store.record import read_observations
from holdfast.store.rundir import RunDir


class DryRun(TypedDict):
    """The number of trials and model calls of a run."""

    trials: int
    cells: int
    controls: int
    judge_calls: int
    user_calls: int
    """An upper limit: a conversation may end early."""


def count_planned(job: Job, rundir: RunDir | None) -> DryRun:
    """Count a whole new run, or what is missing from a run to resume."""
    plan = job.plan
    stored = read_observations(rundir, traces=False) if rundir else ()
    done = IdTable(observation.trial for observation in stored if not observation.error)
    votes = {rule.id: count_calls(rule) for rule in plan.invariants if consults_model(rule)}
    trials = judge_calls = asked_users = 0
    for trial in plan.trials:
        if done.find(trial.id) is None:
            trials += 1
            judge_calls += sum(votes.get(rule.id, 0) for rule in plan.get_rules(trial)) if votes else 0
            asked_users += count_user_calls(trial.task)
    by_id = {trial.id: trial for trial in (*plan.controls, *([job.preflight_trial] if job.preflight_trial else []))}
    controls = [trial for id, trial in by_id.items() if done.find(id) is None]
    asked_users += sum(count_user_calls(trial.task) for trial in controls)
    return DryRun(
        trials=trials,
        cells=len(plan.cells),
        controls=len(controls),
        judge_calls=judge_calls,
        user_calls=asked_users,
    )


def count_calls(rule: Invariant) -> int:
    """Model calls for one verdict of the rule, without cached or malformed replies."""
    votes = rule.settings.get("votes", 1)
    times = votes if isinstance(votes, int) else 1  # a plug-in may use the setting for something else
    return times * get_traits(rule).calls_per_vote
