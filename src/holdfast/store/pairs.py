"""The decided verdicts of a stored run, each by what it is of: the same in two runs, whatever their agents."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from holdfast.model.codec import canonical
from holdfast.store.record import trials, verdicts
from holdfast.store.rundir import RunDir
from holdfast.store.stored_trials import StoredTrials


class StoredPair(NamedTuple):
    """Half of a pair: a verdict that passed or failed."""

    key: int
    """Of part, rule, scenario, prompt, params and replica."""
    part: str
    rule: str
    scenario: str
    replica: int
    passed: bool


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
            of = canonical((part, verdict.invariant, trial.scenario, trial.task, trial.params, trial.replica))
            key = int.from_bytes(blake2b(of, digest_size=8).digest())
            yield StoredPair(key, part, verdict.invariant, trial.scenario, trial.replica, verdict.outcome == "pass")
    finally:
        stored.close()
