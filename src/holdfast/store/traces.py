"""The trace and the audit log of a trial, each in its own file, one event per line.

A trace is written as it happens, an audit log when the trial has ended."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from holdfast.model.codec import LazyDecoder, create_decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent
from holdfast.store.lines import SIZE, read_lines, write_all
from holdfast.store.rundir import RunDir

SETTLED_KEPT = 10_000
"""Ended trials that are remembered: an event may arrive just after its trial."""
TRACE_LOST = "the trace of this trial is missing from the run's traces, or damaged"
AUDIT_LOST = "the audit log of this trial is missing from the run's folder, or damaged"

_HEX = frozenset("0123456789abcdef")
_traced, _audited = create_decoder(TraceEvent), create_decoder(AuditEvent)
_AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
T = TypeVar("T")


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
        if not is_id(trial):
            return  # then it stays in the observation
        written = self._written.setdefault(trial, TraceSeal())
        try:
            fd = self._open.get(trial)
            if fd is None:
                fd = self._open[trial] = self._create(trial)
            written.add(fd, event)
        except OSError:
            # The disk may be full. Events arrive in callbacks, where nobody can handle an error: `finish` writes the
            # trace again, and an error there ends the run.
            changed = True
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
        # The file of a running trial is only usable if it has exactly the events of the final trace. Otherwise it is
        # written again from the observation, which is complete.
        if traced.changed or traced.events != len(observation.trace) or observation.attempts > 1:
            digest = _write_events(self._folder, observation.trial, observation.trace)
        else:
            digest = traced.digest.hexdigest()
        return replace(observation, trace=(), events=len(observation.trace), events_digest=digest)

    def close(self) -> None:
        for trial in list(self._open):
            self._close(trial)

    def _create(self, trial: str) -> int:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(get_event_file(self._folder, trial), _AFRESH | os.O_APPEND, 0o600)

    def _close(self, trial: str) -> TraceSeal:
        """Close the trial's file and return what was written to it."""
        fd = self._open.pop(trial, None)
        if fd is not None:
            os.close(fd)
        return self._written.pop(trial, None) or TraceSeal()


def is_id(trial: str) -> bool:
    """Return whether this can be a trial's id: a name that cannot leave the folder."""
    return bool(trial) and _HEX.issuperset(trial)


def get_event_file(folder: Path, trial: str) -> Path:
    """Return the path of a trial's events in the run's folder of traces, or of audit logs."""
    return folder / f"{trial}.jsonl"


def _write_events(folder: Path, trial: str, events: Iterable[TraceEvent | AuditEvent]) -> str:
    """Write all events of a trial, and return their digest."""
    data = b"".join(encode(event) + b"\n" for event in events)
    folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(get_event_file(folder, trial), _AFRESH, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    return blake2b(data, digest_size=SIZE).hexdigest()


def store_audit(run: RunDir, observation: Observation) -> Observation:
    """Return the observation to store: its complete audit log is in the file, and only its length is here."""
    if not observation.audit or not is_id(observation.trial):
        return observation
    digest = _write_events(run.path / "audit", observation.trial, observation.audit)
    return replace(observation, audit=(), audited=len(observation.audit), audited_digest=digest)


def read_details(run: RunDir, observation: Observation) -> Observation:
    """Return the observation with its trace and audit log; an incomplete one may not be judged."""
    if observation.events:
        trace = _read_events(run, observation, "traces", observation.events_digest, _traced, observation.events)
        error = "" if len(trace) == observation.events else TRACE_LOST
        ordered = tuple(sorted(trace, key=lambda event: event.ts)) if not error else ()
        observation = replace(observation, trace=ordered, events=0, events_digest="", error=observation.error or error)
    if observation.audited:
        audit = _read_events(run, observation, "audit", observation.audited_digest, _audited, observation.audited)
        error = "" if len(audit) == observation.audited else AUDIT_LOST
        observation = replace(
            observation,
            audit=audit if not error else (),
            audited=0,
            audited_digest="",
            error=observation.error or error,
        )
    return observation


def _read_events(
    run: RunDir, observation: Observation, folder: str, digest: str, decoder: LazyDecoder[T], count: int
) -> tuple[T, ...]:
    """Return the events in a trial's file; none if the file is missing or not as the run wrote it."""
    if not is_id(observation.trial):
        return ()
    try:
        lines = list(islice(read_lines(get_event_file(run.path / folder, observation.trial)), count + 1))
        if blake2b(b"".join(lines), digest_size=SIZE).hexdigest() != digest:
            return ()
        return tuple(map(decoder.decode, lines))
    except (OSError, ValueError, RecursionError):
        return ()
