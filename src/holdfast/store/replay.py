"""Reading a stored run back into a tally, for `--resume`, `report` and `judge`."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.score import Tally
from holdfast.store.record import observations, trials, verdicts
from holdfast.store.rundir import RunDir


class StoredRun(Struct):
    """What a run's directory holds of a plan."""

    seen: set[str]
    """Ids of the trials that need not run again."""
    controls: dict[str, Observation]
    unjudged: list[tuple[Trial, Observation]]
    """Seen, but killed before the verdict was written."""


def replay(run: RunDir, plan: Plan, tally: Tally, *, keep_errors: bool = False) -> StoredRun:
    """Adds every stored verdict to the tally.

    A trial that our side broke counts as not run, unless `keep_errors` asks for the run as it ended.
    """
    stored = StoredRun(set(), {}, [])
    begun = trials(run)
    if not begun:  # a new run: nothing to read, and no reason to walk through the plan
        return stored
    controls = {id: trial for id, trial in begun.items() if trial.kind == "control"}
    # A run that was forced may hold trials of another spec; and an id says which trial it is, whatever else is stored.
    begun = {**{trial.id: trial for trial in plan.trials if trial.id in begun}, **controls}
    given = _given(run)
    broken: dict[str, Observation] = {}
    for seen in observations(run):
        if seen.error:
            broken[seen.trial] = seen
            continue
        broken.pop(seen.trial, None)  # it was run again, and better
        _add(plan, tally, stored, begun, seen, given)
    for seen in broken.values() if keep_errors else ():
        _add(plan, tally, stored, begun, seen, given)
    return stored


def _given(run: RunDir) -> dict[str, dict[str, Verdict]]:
    """The run's own verdicts by trial and rule; the last of several counts."""
    given: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts(run.verdicts()):
        given.setdefault(verdict.trial, {})[verdict.invariant] = verdict
    return given


def _add(
    plan: Plan,
    tally: Tally,
    stored: StoredRun,
    begun: dict[str, Trial],
    seen: Observation,
    given: dict[str, dict[str, Verdict]],
) -> None:
    trial = begun.get(seen.trial)
    if trial is None or trial.id in stored.seen:
        return
    if trial.kind == "control":
        if trial.id not in stored.controls:
            tally.saw(trial, seen)
        if not seen.masked:  # what is compared with it will not be masked: it is asked again
            stored.controls[trial.id] = seen
        return
    stored.seen.add(trial.id)
    rules, verdicts = plan.rules(trial), given.get(trial.id, {})
    if any(rule.id not in verdicts for rule in rules):
        stored.unjudged.append((trial, seen))
        return
    tally.saw(trial, seen)
    tally.cases.add(trial, seen, verdicts.values())
    for rule in rules:
        tally.add(trial, seen, verdicts[rule.id])
