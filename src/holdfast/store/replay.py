"""Reads a stored run back into a tally, for `--resume`, `report` and `judge`. No record stays in memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from holdfast.model.codec import create_decoder
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import LazySequence, Plan
from holdfast.score import Tally
from holdfast.store.index import Chains
from holdfast.store.lines import LineReader, read_records
from holdfast.store.record import StoredObservations, read_trials
from holdfast.store.rundir import RunDir
from holdfast.store.stored_trials import IdTable

_verdicts = create_decoder(Verdict)


class GivenVerdicts:
    """The verdicts of a file, by trial. `number` maps an id to one of `trials` numbers. Close it after use."""

    def __init__(self, path: Path, number: Callable[[str], int | None], trials: int) -> None:
        self._by_trial = Chains(trials)
        self._starts = array("Q")
        for start, verdict in read_records(path, _verdicts.decode, _verdicts.decode_lines):
            at = number(verdict.trial)
            if at is not None:
                self._by_trial.add(at)
                self._starts.append(start)
        self._lines = LineReader(path) if self._starts else None

    def read_verdicts(self, trial: int) -> dict[str, Verdict]:
        """Return the verdicts on a trial by rule; the last of several counts."""
        if self._lines is None:
            return {}
        lines = (self._lines.read_line(self._starts[number]) for number in self._by_trial.list_owned(trial))
        return {verdict.invariant: verdict for verdict in map(_verdicts.decode, lines)}

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


class StoredRun(Struct):
    """The part of a plan that a run's directory contains."""

    done: int
    """Trials that need not run again."""
    left: Sequence[Trial]
    """The others, in the plan's order."""
    controls: dict[str, Observation]
    unjudged: Iterable[tuple[Trial, Observation]]
    """Observed, but the run was killed before the verdict was written."""


def replay_verdicts(run: RunDir, plan: Plan, tally: Tally, *, keep_errors: bool = False) -> StoredRun:
    """Add every stored verdict to the tally.

    A trial with a harness error counts as not run, unless `keep_errors` asks for the run as it ended.
    """
    if next(read_trials(run), None) is None:  # a new run: nothing to read, and no reason to walk the plan
        return StoredRun(0, plan.trials, {}, ())
    reading = _StoredReading(run, plan, tally)
    with closing(reading):
        reading.add_all()
        if keep_errors:
            reading.add_broken()
    return reading.build_stored_run()


class _StoredReading:
    """The trials of a plan by index, and the progress of each."""

    def __init__(self, run: RunDir, plan: Plan, tally: Tally) -> None:
        self._plan = plan
        self._tally = tally
        self._ids = IdTable(trial.id for trial in plan.trials)
        self._begun = bytearray(len(plan.trials))
        self._done = bytearray(len(plan.trials))
        self._broken = array("q", [-1]) * len(plan.trials)
        """The position of the last observation with a harness error, by trial."""
        self._unjudged = array("q")
        self._begun_controls: dict[str, Trial] = {}
        """Controls that were begun, by id."""
        self._controls: dict[str, Observation] = {}
        self._broken_controls: dict[str, Observation] = {}
        for trial in read_trials(run):
            # A forced resume may leave trials of another spec; the id identifies a trial, whatever else is stored.
            place = self._ids.find(trial.id)
            if place is not None:
                self._begun[place] = True
            elif trial.kind == "control":
                self._begun_controls[trial.id] = trial.build_trial({})
        self._observations = StoredObservations(run)
        self._verdicts = GivenVerdicts(run.get_verdict_file(), self._ids.find, len(plan.trials))

    def add_all(self) -> None:
        """Add every observed trial."""
        for at, observation in self._observations.read_all():
            if observation.trial in self._begun_controls:
                self._add_control(self._begun_controls[observation.trial], observation)
                continue
            place = self._ids.find(observation.trial)
            if place is None or not self._begun[place] or self._done[place]:
                continue
            if observation.error:
                # A resumed run asks a trial with a harness error again, so a good observation may follow. The bad one
                # counts only if none does, and only for readers of the run as it ended.
                self._broken[place] = at
            else:
                self._broken[place] = -1  # a repetition succeeded
                self._add_trial(place, at, observation)

    def add_broken(self) -> None:
        """Add the trials with only harness errors."""
        for id, control in self._broken_controls.items():
            self._keep_control(self._begun_controls[id], control)
        for at in sorted(at for at in self._broken if at >= 0):
            observation = self._observations.read_at(at)
            place = self._ids.find(observation.trial)
            assert place is not None
            self._add_trial(place, at, observation)

    def build_stored_run(self) -> StoredRun:
        """Build the stored part of the run from the records read."""
        done, every = self._done, self._plan.trials
        left = every
        if any(done):
            left = LazySequence(
                every.__getitem__, array("L", (place for place, is_done in enumerate(done) if not is_done))
            )
        return StoredRun(sum(done), left, self._controls, self._read_unjudged())

    def close(self) -> None:
        self._verdicts.close()
        self._observations.close()

    def _read_unjudged(self) -> Iterator[tuple[Trial, Observation]]:
        with closing(self._observations):
            for at in self._unjudged:
                observation = self._observations.read_at(at)
                place = self._ids.find(observation.trial)
                assert place is not None
                yield self._plan.trials[place], observation

    def _add_control(self, trial: Trial, observation: Observation) -> None:
        if observation.error:
            self._broken_controls[trial.id] = observation
            return
        self._broken_controls.pop(trial.id, None)
        self._keep_control(trial, observation)

    def _keep_control(self, trial: Trial, observation: Observation) -> None:
        if trial.id not in self._controls:
            self._tally.note_trial(trial, observation)
        if not observation.masked:  # an unmasked observation must be compared with an unmasked control: it runs again
            self._controls[trial.id] = observation

    def _add_trial(self, place: int, at: int, observation: Observation) -> None:
        trial = self._plan.trials[place]
        self._done[place] = True
        rules, verdicts = self._plan.get_rules(trial), self._verdicts.read_verdicts(place)
        if any(rule.id not in verdicts for rule in rules):
            self._unjudged.append(at)
            return
        self._tally.add_trial(trial, observation, [verdicts[rule.id] for rule in rules])
