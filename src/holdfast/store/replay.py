"""Reads a stored run back into a tally, for `--resume`, `report` and `judge`. No record stays in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.plan import LazySequence, Plan
from holdfast.score import Tally
from holdfast.store.stored_records import IdTable, RunRecords


class StoredRun(Struct):
    """The part of a plan that a run's directory contains."""

    done: int
    """Trials that need not run again."""
    left: Sequence[Trial]
    """The others, in the plan's order."""
    controls: dict[str, Observation]
    foreign: frozenset[str]
    """Observed trials that the plan does not have: the resume was forced after the spec changed."""
    judged: Sequence[int]
    """The numbers of the trials that were added to the tally."""
    unjudged: Iterable[tuple[Trial, Observation]]
    """Observed, but the run was killed before the verdict was written."""


def replay_verdicts(records: RunRecords, plan: Plan, tally: Tally, *, keep_errors: bool = False) -> StoredRun:
    """Add every stored verdict to the tally.

    A trial with a harness error counts as not run, unless `keep_errors` asks for the run as it ended.
    """
    every = plan.trials
    if not len(records.ids):  # a new run: nothing to read, and no reason to walk the plan
        return StoredRun(0, every, {}, frozenset(), (), ())
    places, done = IdTable(trial.id for trial in every), bytearray(len(every))
    judged, unjudged = array("I"), array("I")
    controls: dict[str, Observation] = {}
    foreign: set[str] = set()
    for number, observation in records.iter_observed():
        place, counts = places.find(observation.trial), keep_errors or not observation.error
        if place is None:  # the id identifies a trial, whatever else is stored
            trial = records.read_trial(number)
            if trial.kind == "contract":
                foreign.add(trial.id)
            elif counts:
                tally.note_trial(trial, observation)
                if (
                    not observation.masked
                ):  # an unmasked observation is compared with an unmasked control: it runs again
                    controls[trial.id] = observation
            continue
        if not counts:
            continue
        done[place] = True
        rules, verdicts = plan.get_rules(every[place]), records.read_verdicts(number)
        if any(rule.id not in verdicts for rule in rules):
            unjudged.append(number)
        else:
            tally.add_trial(every[place], observation, [verdicts[rule.id] for rule in rules])
            judged.append(number)
    missing = array("L", (place for place, is_done in enumerate(done) if not is_done))
    left = LazySequence(every.__getitem__, missing) if any(done) else every
    rest = _read_unjudged(records, unjudged, plan, places)
    return StoredRun(sum(done), left, controls, frozenset(foreign), judged, rest)


def _read_unjudged(
    records: RunRecords, numbers: Iterable[int], plan: Plan, places: IdTable
) -> Iterator[tuple[Trial, Observation]]:
    for number in numbers:
        observation = records.read_observation(number)
        place = places.find(observation.trial)
        assert place is not None
        yield plan.trials[place], observation
