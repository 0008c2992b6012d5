"""The audit log of a trial in its own file, one event per line, written when the trial has ended."""

from __future__ import annotations

import os
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from holdfast.model.codec import create_decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.world import AuditEvent
from holdfast.store.lines import write_all
from holdfast.store.record_lines import read_lines
from holdfast.store.rundir import RunDir
from holdfast.store.seals import SIZE
from holdfast.store.traces import add_trace, is_id

LOST = "the audit log of this trial is missing from the run's folder, or damaged"

_events = create_decoder(AuditEvent)
_AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def store_audit(run: RunDir, observation: Observation) -> Observation:
    """Return the observation to store: its complete audit log is in the file, and only its length is here."""
    if not observation.audit or not is_id(observation.trial):
        return observation
    data = b"".join(encode(event) + b"\n" for event in observation.audit)
    folder = run.path / "audit"
    folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(_get_file(folder, observation.trial), _AFRESH, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    digest = blake2b(data, digest_size=SIZE).hexdigest()
    return replace(observation, audit=(), audited=len(observation.audit), audited_digest=digest)


def read_details(run: RunDir, observation: Observation) -> Observation:
    """Return the observation with its trace and audit log; an incomplete one may not be judged."""
    return _add_audit(run, add_trace(run, observation)) if observation.events or observation.audited else observation


def _add_audit(run: RunDir, observation: Observation) -> Observation:
    if not observation.audited:
        return observation
    try:
        events = tuple(map(_events.decode, _read_lines(run, observation)))
    except (OSError, ValueError, RecursionError):
        events = ()
    if len(events) != observation.audited:
        return replace(observation, audited=0, audited_digest="", error=observation.error or LOST)
    return replace(observation, audit=events, audited=0, audited_digest="")


def _read_lines(run: RunDir, observation: Observation) -> list[bytes]:
    """Return the lines of the trial's audit file; none if the file was changed."""
    if not is_id(observation.trial):
        return []
    lines = list(islice(read_lines(_get_file(run.path / "audit", observation.trial)), observation.audited + 1))
    return lines if blake2b(b"".join(lines), digest_size=SIZE).hexdigest() == observation.audited_digest else []


def _get_file(folder: Path, trial: str) -> Path:
    return folder / f"{trial}.jsonl"
