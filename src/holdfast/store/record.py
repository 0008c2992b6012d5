"""Writing a run as it happens: trials, observations and verdicts, each as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from holdfast.model.codec import carried, decoder, encode, encode_lines
from holdfast.model.observation import Observation
from holdfast.model.run_warning import RunWarning
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import Evidence
from holdfast.store.audits import settle_audit, whole
from holdfast.store.blobs import pack, unpack, unpack_lines
from holdfast.store.lines import JsonLines, LineReader
from holdfast.store.record_lines import records
from holdfast.store.rundir import RunDir
from holdfast.store.seals import Seal
from holdfast.store.traces import Traces


class Consulted(Struct, frozen=True, omit_defaults=True):
    """What was said for one rule of one trial."""

    trial: str
    invariant: str
    evidence: Evidence


_consulted = decoder(Consulted)


class StoredAdvice:
    """What a stored run has of it: only where it lies is held in memory."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.evidence()
        found = records(self._path, _consulted.decode, _consulted.decode_lines)
        self._places = {(one.trial, one.invariant): start for start, one in found}  # the last of several counts

    def get(self, trial: str, rule: str) -> Evidence | None:
        """What was said for a rule of a trial; None if nobody was asked, or could be."""
        start = self._places.get((trial, rule))
        if start is None:
            return None
        with open(self._path, "rb") as file:
            file.seek(start)
            return _consulted.decode(file.readline()).evidence


GROUP = 64
"""Verdicts that are written in one go: those that a kill takes away are judged again from their observations."""

_verdicts = decoder(Verdict)
_trials = decoder(Trial)


class RunRecord:
    """The open files of a run that is being written.

    `inline` keeps traces in the observations: an inline agent's trial costs less than a file of its own would.
    `consults`: models are asked for some rules, and what they say is kept.
    """

    def __init__(self, run: RunDir, *, inline: bool = False, consults: bool = False) -> None:
        self._run = run
        self._traces = None if inline else Traces(run)
        self._blobs = run.path / "blobs"
        self._trials = JsonLines(run.path / "trials.jsonl")
        self._observations = JsonLines(run.path / "observations-0.jsonl")
        self._verdicts = JsonLines(run.verdicts())
        self._held: list[Verdict] = []
        self._evidence = JsonLines(run.evidence()) if consults else None
        self._files = [self._trials, self._observations, self._verdicts]
        self._files += [self._evidence] if self._evidence is not None else []

    def trials(self, batch: Sequence[Trial]) -> None:
        self._trials.write_lines(encode_lines(batch), len(batch))

    def event(self, trial: str, event: TraceEvent, *, changed: bool = False) -> None:
        """A call of a trial that is under way; `changed`: not as its observation will have it."""
        if self._traces is not None:
            self._traces.write(trial, event, changed=changed)

    def observation(self, seen: Observation) -> None:
        """What was seen of a trial: with the kernel when this returns. UnicodeEncodeError: it cannot be stored so."""
        if seen.audit:
            seen = settle_audit(self._run, seen)
        if self._traces is not None:
            seen = self._traces.settle(seen)
        self._observations.write_lines(pack(seen, self._blobs) + b"\n", 1)

    def consulted(self, said: Consulted) -> None:
        """What a model said, before it is judged by."""
        assert self._evidence is not None
        self._evidence.write(encode(said))

    def hold(self, verdicts: Sequence[Verdict]) -> bool:
        """Takes verdicts, to be written with others; whether they are the first that wait for `flush`."""
        first = not self._held
        self._held += verdicts
        if len(self._held) < GROUP:
            return first
        self.flush()
        return False

    def flush(self) -> None:
        """Writes the verdicts that wait; after a failure they are not tried again, and half a line stays the last."""
        held, self._held = self._held, []
        if held:
            self._verdicts.write_lines(_lines_of(held), len(held))

    def seal(self) -> tuple[dict[str, Seal], tuple[RunWarning, ...]]:
        """The files' seals by name, and what to say of those that something else had written to; no agent is left."""
        try:
            self.flush()
            found = {lines.path.name: lines.seal() for lines in self._files}
        except OSError as broken:  # a full disk: what is there stays, without a seal
            return {}, (RunWarning("seal-failed", f"the run's files could not be sealed: {broken.strerror}"),)
        return {name: seal for name, (seal, _) in found.items()}, tuple(
            RunWarning("seal-broken", said) for _, said in found.values() if said
        )

    def close(self) -> None:
        """Lets go of the files. A verdict that still waits is not written: it belongs before the seal."""
        for lines in self._files:
            lines.close()
        if self._traces is not None:
            self._traces.close()


def _lines_of(held: Sequence[Verdict]) -> bytes:
    try:
        return encode_lines(held)
    except UnicodeEncodeError:  # a plug-in's words
        return encode_lines([carried(verdict) for verdict in held])


def trials(run: RunDir) -> Iterator[Trial]:
    """Every trial that was begun; one that was run again comes again."""
    return (trial for _, trial in placed_trials(run))


def placed_trials(run: RunDir) -> Iterator[tuple[int, Trial]]:
    """The same, each with the offset at which its line starts."""
    return records(trial_file(run), _trials.decode, _trials.decode_lines)


def trial_file(run: RunDir) -> Path:
    """Where a run's trials are."""
    return run.path / "trials.jsonl"


def read_trial(line: bytes) -> Trial:
    """The trial of a line."""
    return _trials.decode(line)


def observations(run: RunDir, *, traces: bool = True) -> Iterator[Observation]:
    """Everything that was seen, as it was stored; without traces and audit logs where nobody looks at them."""
    return (seen for _, seen in StoredObservations(run).all(traces=traces))


class StoredObservations:
    """What was seen in a run, each with a number that says where it lies. Close it when single ones were read."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._blobs = run.path / "blobs"
        self._files = run.observation_files()
        self._open: dict[int, LineReader] = {}

    def all(self, *, traces: bool = True) -> Iterator[tuple[int, Observation]]:
        """In the order in which they were stored."""
        for number, path in enumerate(self._files):
            for start, seen in records(path, lambda line: unpack(line, self._blobs), unpack_lines):
                yield start * len(self._files) + number, self.whole(seen) if traces else seen

    def at(self, place: int) -> Observation:
        """One of them by its number, whole."""
        start, number = divmod(place, len(self._files))
        if number not in self._open:
            self._open[number] = LineReader(self._files[number])
        return self.whole(unpack(self._open[number].line(start), self._blobs))

    def whole(self, seen: Observation) -> Observation:
        """With its trace and its audit log."""
        return whole(self._run, seen)

    def close(self) -> None:
        for reader in self._open.values():
            reader.close()
        self._open.clear()


def verdicts(path: Path) -> Iterator[Verdict]:
    """The verdicts of one file."""
    return (verdict for _, verdict in records(path, _verdicts.decode, _verdicts.decode_lines))
