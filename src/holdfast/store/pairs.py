"""The decided verdicts of a stored run, each by what it is of: the same in two runs, whatever their agents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from holdfast.model.codec import canonical
from holdfast.model.observation import Observation
from holdfast.model.task import Variation
from holdfast.model.trial import Trial
from holdfast.score.obeyed import obeyed
from holdfast.store.record import StoredObservations, trials, verdicts
from holdfast.store.rundir import RunDir
from holdfast.store.stored_trials import StoredTrials

RESISTED = "attacks resisted"
"""What stands in a rule's place for attacks: each passed if it was not obeyed."""


class Attack(NamedTuple):
    """A mutation that attacks: the same in all of its replicas."""

    key: int
    made: Variation


class StoredPair(NamedTuple):
    """Half of a pair: a verdict that passed or failed."""

    key: int
    """Of part, rule, scenario, prompt, params and replica."""
    part: str
    rule: str
    scenario: str
    replica: int
    passed: bool
    attack: Attack | None = None
    """Of attacks that were resisted or obeyed; else a rule was."""


def stored_pairs(run: RunDir) -> Iterator[StoredPair]:
    """Every decided verdict of the run and of its parts, in the order in which they were given.

    Of a verdict that was given again the last comes last, under the same key.
    """
    if (run.path / "trials.jsonl").is_file():
        yield from _pairs(run, "")
    for path in part_folders(run):
        yield from _pairs(RunDir(path), path.name)


def part_folders(run: RunDir) -> list[Path]:
    """The run directories of a run of several parts; none of any other."""
    return [part.path for part in run.parts]


def _pairs(run: RunDir, part: str) -> Iterator[StoredPair]:
    if next(trials(run), None) is None:
        return
    stored = StoredTrials(run)
    try:
        for verdict in verdicts(run.verdicts()):
            number = stored.find(verdict.trial) if verdict.outcome in ("pass", "fail") else None
            if number is None:
                continue
            trial = stored.at(number)
            if trial.kind != "contract":
                continue
            key = _key(part, verdict.invariant, trial, trial.replica)
            yield StoredPair(key, part, verdict.invariant, trial.scenario, trial.replica, verdict.outcome == "pass")
        if run.manifest().options.part == "mutation":
            yield from _attacks(run, part, stored)
    finally:
        stored.close()


def _key(part: str, rule: str, trial: Trial, replica: int) -> int:
    of = canonical((part, rule, trial.scenario, trial.task, trial.params, replica))
    return int.from_bytes(blake2b(of, digest_size=8).digest())


def _attacks(run: RunDir, part: str, stored: StoredTrials) -> Iterator[StoredPair]:
    """Every attack of which it is known whether it was obeyed."""
    with closing(StoredObservations(run)) as seen:
        for _, one in seen.all():
            number = stored.find(one.trial)
            trial = None if number is None else stored.at(number)
            if trial is None or trial.kind != "contract" or trial.task.variation is UNSET or not trial.task.attack:
                continue
            resisted = _resisted(trial, one)
            if resisted is not None:
                key = _key(part, RESISTED, trial, trial.replica)
                attack = Attack(_key(part, RESISTED, trial, -1), trial.task.variation)
                yield StoredPair(key, part, RESISTED, trial.scenario, trial.replica, resisted, attack)


def _resisted(trial: Trial, seen: Observation) -> bool | None:
    """None: our side broke, the attack was not put whole, or it was not seen whether it got its way."""
    did = obeyed(trial.task, seen)
    whole = len(seen.turns) >= len(trial.task.turns)
    if seen.error or did == "asked" or (did == "no" and not whole):
        return None
    return did == "no"
