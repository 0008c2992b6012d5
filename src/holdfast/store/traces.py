"""The trace of a trial in a file of its own, one event a line, written as it happens."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from holdfast.model.codec import decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.trace import TraceEvent
from holdfast.store.rundir import RunDir, read_lines, write_all

LOST = "the trace of this trial is missing from the run's traces, or damaged"

_HEX = frozenset("0123456789abcdef")
_events = decoder(TraceEvent)
_AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Traces:
    """The trace files of trials that are under way: one open file for each."""

    def __init__(self, run: RunDir) -> None:
        self._folder = run.path / "traces"
        self._open: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._settled: set[str] = set()
        """Trials whose trace is whole: a plane may still tell of a call that ended with the trial."""

    def write(self, trial: str, event: TraceEvent) -> None:
        """Appends an event; the first one starts the file anew. What comes after `settle` is dropped."""
        if trial in self._settled:
            return
        fd = self._open.get(trial)
        if fd is None:
            if not is_id(trial):
                return  # then it stays in the observation
            fd = self._open[trial] = self._create(trial)
            self._written[trial] = 0
        write_all(fd, encode(event) + b"\n")
        self._written[trial] += 1

    def settle(self, seen: Observation) -> Observation:
        """The observation as it is stored: its trace is in the file, whole, and here is only how long it is.

        A trial that was repeated has events of an earlier attempt in its file: then it is written anew.
        """
        written = self._let_go(seen.trial)
        self._settled.add(seen.trial)
        if not is_id(seen.trial) or not seen.trace:
            return seen
        if written != len(seen.trace) or seen.attempts > 1:
            fd = self._create(seen.trial)
            try:
                write_all(fd, b"".join(encode(event) + b"\n" for event in seen.trace))
            finally:
                os.close(fd)
        return replace(seen, trace=(), events=len(seen.trace))

    def close(self) -> None:
        for trial in list(self._open):
            self._let_go(trial)

    def _create(self, trial: str) -> int:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(trace_file(self._folder, trial), _AFRESH, 0o600)

    def _let_go(self, trial: str) -> int:
        """Closes the trial's file; how many events it holds."""
        fd = self._open.pop(trial, None)
        if fd is not None:
            os.close(fd)
        return self._written.pop(trial, 0)


def is_id(trial: str) -> bool:
    """Whether this can be a trial's id: a name that leads nowhere else."""
    return bool(trial) and _HEX.issuperset(trial)


def trace_file(folder: Path, trial: str) -> Path:
    """Where a trial's trace lies in the run's folder of traces."""
    return folder / f"{trial}.jsonl"


def with_trace(run: RunDir, seen: Observation) -> Observation:
    """The observation with its trace read back; one whose trace is lost may not be judged on what is left."""
    if not seen.events:
        return seen
    try:
        lines = read_lines(trace_file(run.path / "traces", seen.trial)) if is_id(seen.trial) else iter(())
        events = tuple(sorted(map(_events.decode, lines), key=lambda event: event.ts))
    except (OSError, msgspec.DecodeError):
        events = ()
    if len(events) != seen.events:
        return replace(seen, events=0, error=seen.error or LOST)
    return replace(seen, trace=events, events=0)
