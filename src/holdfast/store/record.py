"""Writes a run as it happens: trials, observations and verdicts, each as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from holdfast.errors import HarnessError
from holdfast.model.codec import create_decoder, encode, encode_lines, make_storable
from holdfast.model.codes import RunWarning
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import CONTROL, Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import Evidence
from holdfast.store.blobs import pack, unpack
from holdfast.store.lines import JsonLines, Seal, read_records
from holdfast.store.rundir import RunDir
from holdfast.store.traces import Traces, read_details, store_audit


class StoredAnswer(Struct, frozen=True, omit_defaults=True):
    """A model's answer for one rule of one trial."""

    trial: str
    invariant: str
    evidence: Evidence


_consulted = create_decoder(StoredAnswer)


class StoredAdvice:
    """The stored answers of a run: only their positions are in memory."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.get_evidence_file()
        placed = read_records(self._path, _consulted.decode)
        self._places = {(one.trial, one.invariant): start for start, one in placed}  # the last of several counts

    def get(self, trial: str, rule: str) -> Evidence | None:
        """Return the answer for a rule of a trial; None if there is none."""
        start = self._places.get((trial, rule))
        if start is None:
            return None
        with open(self._path, "rb") as file:
            file.seek(start)
            return _consulted.decode(file.readline()).evidence


GROUP = 64
"""Verdicts written in one write: those that a kill loses are judged again from their observations."""


class TrialRecord(Struct, frozen=True, omit_defaults=True, gc=False):
    """A trial in `trials.jsonl`: with the name of its scenario.

    The scenario itself is in the spec, or in `scenarios.jsonl` if a planner invented it.
    """

    id: str
    kind: Literal["contract", "control"]
    scenario: str
    task: Task
    replica: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    invariant: str = "*"
    seed: int = 0

    def build_trial(self, scenarios: Mapping[str, Scenario]) -> Trial:
        """Return the trial; a scenario that is not among `scenarios` has no known faults."""
        scenario = scenarios.get(self.scenario) or Scenario(self.scenario)
        return Trial(self.id, self.kind, scenario, self.task, self.replica, self.params, self.invariant, self.seed)


def build_record(trial: Trial) -> TrialRecord:
    """Return the trial as it is stored."""
    name, task = trial.scenario.name, trial.task
    return TrialRecord(trial.id, trial.kind, name, task, trial.replica, trial.params, trial.invariant, trial.seed)


_verdicts = create_decoder(Verdict)
_trials = create_decoder(TrialRecord)
_scenarios = create_decoder(Scenario)


class RunRecord:
    """The open files of a run that is being written.

    `inline` stores traces in the observations: a file for each trial would cost more than an inline agent's trial.
    `consults`: models are asked for some rules, and their answers are stored.
    """

    def __init__(
        self, run: RunDir, scenarios: Iterable[Scenario] = (), *, inline: bool = False, consults: bool = False
    ) -> None:
        """`scenarios` are those of the spec; the run has a copy of it."""
        self._run = run
        self._scenarios = {**read_scenarios(run, scenarios), CONTROL.name: CONTROL}
        # A resumed run seals the file even if it invents nothing more.
        self._invented = JsonLines(run.get_scenario_file()) if run.get_scenario_file().is_file() else None
        self._traces = None if inline else Traces(run)
        self._blobs = run.path / "blobs"
        self._trials = JsonLines(run.path / "trials.jsonl")
        self._observations = JsonLines(run.path / "observations-0.jsonl")
        self._verdicts = JsonLines(run.get_verdict_file())
        self._held: list[Verdict] = []
        self._evidence = JsonLines(run.get_evidence_file()) if consults else None
        self._files = [self._trials, self._observations, self._verdicts]
        self._files += [one for one in (self._evidence, self._invented) if one is not None]

    def write_trials(self, batch: Sequence[Trial]) -> None:
        known = self._scenarios
        for trial in batch:
            # Nearly all trials have the scenario of the spec itself, so comparing objects is enough and costs nothing.
            if known.get(trial.scenario.name) is not trial.scenario:
                self._keep_scenario(trial.scenario)
        self._trials.write_lines(encode_lines(map(build_record, batch)), len(batch))

    def _keep_scenario(self, scenario: Scenario) -> None:
        """Write a scenario that the spec does not have, before the first trial in it."""
        known = self._scenarios.get(scenario.name)
        if known is None:
            if self._invented is None:
                self._invented = JsonLines(self._run.get_scenario_file())
                self._files.append(self._invented)
            self._invented.write(encode(scenario))
        elif known.content != scenario.content:
            raise HarnessError(f"two scenarios of one run are called {scenario.name!r}", code="scenario-doubled")
        self._scenarios[scenario.name] = scenario

    def write_event(self, trial: str, event: TraceEvent, *, changed: bool = False) -> None:
        """Write a call of a running trial; `changed`: it differs from the one in its observation."""
        if self._traces is not None:
            self._traces.write(trial, event, changed=changed)

    def write_observation(self, observation: Observation) -> None:
        """Write an observation: the kernel has it when this returns. UnicodeEncodeError: it cannot be stored."""
        if observation.audit:
            observation = store_audit(self._run, observation)
        if self._traces is not None:
            observation = self._traces.finish(observation)
        self._observations.write_lines(pack(observation, self._blobs) + b"\n", 1)

    def write_answer(self, consulted: StoredAnswer) -> None:
        """Write a model's answer before a verdict depends on it."""
        assert self._evidence is not None
        self._evidence.write(encode(consulted))

    def queue_verdicts(self, verdicts: Sequence[Verdict]) -> bool:
        """Queue verdicts to be written with others; returns whether they are the first to wait for `flush`."""
        first = not self._held
        self._held += verdicts
        if len(self._held) < GROUP:
            return first
        self.flush()
        return False

    def flush(self) -> None:
        """Write the queued verdicts; after a failure they are not retried, and half a line stays the last."""
        lines, self._held = self._held, []
        if lines:
            self._verdicts.write_lines(_encode_verdicts(lines), len(lines))

    def seal(self) -> tuple[dict[str, Seal], tuple[RunWarning, ...]]:
        """Return the files' seals by name, and notes on those that other programs wrote to; no agent is running."""
        self.flush()
        seals = {lines.path.name: lines.seal() for lines in self._files}
        return {name: seal for name, (seal, _) in seals.items()}, tuple(
            RunWarning("seal-broken", note) for _, note in seals.values() if note
        )

    def close(self) -> None:
        """Close the files. A verdict still queued is not written: it belongs before the seal."""
        for lines in self._files:
            lines.close()
        if self._traces is not None:
            self._traces.close()


def _encode_verdicts(held: Sequence[Verdict]) -> bytes:
    try:
        return encode_lines(held)
    except UnicodeEncodeError:  # a plug-in's text
        return encode_lines([make_storable(verdict) for verdict in held])


def read_scenarios(run: RunDir, written: Iterable[Scenario]) -> dict[str, Scenario]:
    """Return the scenarios of a run by name: those `written` in its spec, and those that a planner invented."""
    invented = read_records(run.get_scenario_file(), _scenarios.decode)
    return {one.name: one for one in (*(scenario for _, scenario in invented), *written)}


def read_trials(run: RunDir) -> Iterator[TrialRecord]:
    """Return every trial that was begun; a repeated one appears again."""
    return (trial for _, trial in read_records(run.path / "trials.jsonl", _trials.decode))


def read_trial(line: bytes) -> TrialRecord:
    """Return the trial of a line."""
    return _trials.decode(line)


def read_observations(run: RunDir, *, traces: bool = True) -> Iterator[Observation]:
    """Yield every stored observation; without traces and audit logs if they are not needed."""
    for path in run.list_observation_files():
        for _, observation in read_records(path, lambda line: unpack(line, run.path / "blobs")):
            yield read_details(run, observation) if traces else observation


def read_verdicts(path: Path) -> Iterator[Verdict]:
    """Return the verdicts of one file."""
    return (verdict for _, verdict in read_records(path, _verdicts.decode))
