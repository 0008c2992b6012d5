"""The trace of a trial in its own file, one event per line, written as it happens."""

from __future__ import annotations

import os
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from holdfast.model.codec import create_decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.trace import TraceEvent
from holdfast.store.lines import write_all
from holdfast.store.record_lines import read_lines
from holdfast.store.rundir import RunDir
from holdfast.store.seals import SIZE

SETTLED_KEPT = 10_000
"""Ended trials that are remembered: an event may arrive just after its trial."""
LOST = "the trace of this trial is missing from the run's traces, or damaged"

_HEX = frozenset("0123456789abcdef")
_events = create_decoder(TraceEvent)
_AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class TraceSeal:
    """The length and digest of one trace file."""

    def __init__(self) -> None:
        self.events = 0
        self.digest = blake2b(digest_size=SIZE)
        self.changed = False
        """An event could not be written as it came."""

    def add(self, fd: int, event: TraceEvent) -> None:
        line = encode(event) + b"\n"
        write_all(fd, line)
        self.digest.update(line)
        self.events += 1


class Traces:
    """The trace files of running trials: one open file for each."""

    def __init__(self, run: RunDir) -> None:
        self._folder = run.path / "traces"
        self._open: dict[str, int] = {}
        self._written: dict[str, TraceSeal] = {}
        self._settled: dict[str, None] = {}
        """The latest trials whose trace is complete: a plane may still report a call that ended with the trial."""

    def write(self, trial: str, event: TraceEvent, *, changed: bool = False) -> None:
        """Append an event; the first one starts the file over. Events after `settle` are dropped."""
        if trial in self._settled:
            return
        fd = self._open.get(trial)
        if fd is None:
            if not is_id(trial):
                return  # then it stays in the observation
            fd = self._open[trial] = self._create(trial)
            self._written[trial] = TraceSeal()
        written = self._written[trial]
        written.add(fd, event)
        written.changed = written.changed or changed

    def finish(self, observation: Observation) -> Observation:
        """Return the observation to store: its complete trace is in the file, and only its length is here.

        A repeated trial has events of an earlier attempt in its file: it is then rewritten. It is also rewritten if an
        event could not be written as it came, which raises UnicodeEncodeError until the observation can be stored.
        """
        traced = self._close(observation.trial)
        self._settled[observation.trial] = None
        if len(self._settled) > SETTLED_KEPT:
            del self._settled[next(iter(self._settled))]
        if not is_id(observation.trial) or not observation.trace:
            return observation
        if traced.changed or traced.events != len(observation.trace) or observation.attempts > 1:
            fd, traced = self._create(observation.trial), TraceSeal()
            try:
                for event in observation.trace:
                    traced.add(fd, event)
            finally:
                os.close(fd)
        return replace(observation, trace=(), events=traced.events, events_digest=traced.digest.hexdigest())

    def close(self) -> None:
        for trial in list(self._open):
            self._close(trial)

    def _create(self, trial: str) -> int:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(get_trace_file(self._folder, trial), _AFRESH, 0o600)

    def _close(self, trial: str) -> TraceSeal:
        """Close the trial's file and return what was written to it."""
        fd = self._open.pop(trial, None)
        if fd is not None:
            os.close(fd)
        return self._written.pop(trial, None) or TraceSeal()


def is_id(trial: str) -> bool:
    """Whether this can be a trial's id: a name that cannot leave the folder."""
    return bool(trial) and _HEX.issuperset(trial)


def get_trace_file(folder: Path, trial: str) -> Path:
    """Return the path of a trial's trace in the run's folder of traces."""
    return folder / f"{trial}.jsonl"


def add_trace(run: RunDir, observation: Observation) -> Observation:
    """Return the observation with its trace; one without its complete trace may not be judged."""
    if not observation.events:
        return observation
    try:
        events = tuple(sorted(map(_events.decode, _read_lines(run, observation)), key=lambda event: event.ts))
    except (OSError, ValueError, RecursionError):
        events = ()
    if len(events) != observation.events:
        return replace(observation, events=0, events_digest="", error=observation.error or LOST)
    return replace(observation, trace=events, events=0, events_digest="")


def _read_lines(run: RunDir, observation: Observation) -> list[bytes]:
    """Return the lines of the trial's trace file; none if the file was changed."""
    if not is_id(observation.trial):
        return []
    lines = list(islice(read_lines(get_trace_file(run.path / "traces", observation.trial)), observation.events + 1))
    return lines if blake2b(b"".join(lines), digest_size=SIZE).hexdigest() == observation.events_digest else []
