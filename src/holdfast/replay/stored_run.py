"""Converts the trials of a stored run, or of its report, to sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import JSON, format_too_new
from holdfast.model.run import TracedTrial
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.reading.tree import parse
from holdfast.replay.foreign_json import read_at, read_text
from holdfast.replay.foreign_trace import LeftOutTrace, SessionsFound
from holdfast.replay.trial_session import (
    build_identities,
    build_session,
    explain_unstorable,
    has_only_obeyed,
    list_failures,
    list_replies,
)
from holdfast.runner.outcome import RunOutcome, load_run
from holdfast.store.rundir import RunDir

_LARGEST = 512 << 20


_ID = re.compile(r"\d+(/[a-z]+)?")
"""The id of a run, or of a part of one, in a report."""


def read_run_sessions(
    run: RunDir, folder: Path, *, environ: Mapping[str, str], failed_only: bool, trial: str = ""
) -> SessionsFound:
    """Return the trials of a run, or of all its parts, as sessions for a folder; `trial` selects ids with that
    prefix.
    """
    contract = find_contract(run.read_manifest().original, folder)
    every = []
    for part in run.parts or (run,):
        with closing(load_run(part, environ=environ)) as outcome:
            wanted = [
                one
                for one in outcome.cells.read_traced()
                if one.trial.kind == "contract" and one.trial.id.startswith(trial)
                if not failed_only or list_failures(one) or has_only_obeyed(one)
            ]
            sessions, part_name = _build_sessions(wanted, run.id, outcome, contract), outcome.run.part
            if contract and sessions.sessions and part_name in ("mutation", "chaos"):
                remedy = "but sessions use the rules of a contract: add such rules to it"
                note = f"failures in {part_name} broke rules of run, {remedy}"
                sessions = replace(sessions, notes=(*sessions.notes, note))
            every.append(sessions)
    return merge_sessions(every)


def read_stored_trial(run: RunDir, id: str, environ: Mapping[str, str]) -> TracedTrial:
    """Return the trial of a run, or of one of its parts, with this id."""
    for part in run.parts or (run,):
        with closing(load_run(part, environ=environ)) as outcome:
            traced = next((candidate for candidate in outcome.cells.read_traced() if candidate.trial.id == id), None)
            if traced is not None:
                return traced
    raise UsageError(f"run {run.id} has no trial {id}", code="run-unusable")


def merge_sessions(parts: Iterable[SessionsFound]) -> SessionsFound:
    """Combine several; of two trials with one id, which ask the same, the first."""
    every = list(parts)
    sessions = {session.id: session for each in reversed(every) for session in reversed(each.sessions)}
    return SessionsFound(
        tuple(sessions[id] for id in dict.fromkeys(session.id for each in every for session in each.sessions)),
        tuple(trace for each in every for trace in each.left_out),
        tuple(note for each in every for note in each.notes),
    )


def find_contract(spec: Path, folder: Path) -> str:
    """Return the path of the spec's contract relative to the folder; empty if it has none, or is gone."""
    if not spec.is_file():
        return ""
    root, _ = parse(spec.read_text(encoding="utf-8", errors="replace"))
    has = root is not None and root.kind == "map" and root.has("contract")
    return os.path.relpath(spec.resolve(), folder.resolve()) if has else ""


def read_report_sessions(path: Path, runs: Path, folder: Path, *, environ: Mapping[str, str]) -> SessionsFound:
    """Return the failed trials of a JSON report's run, which must be stored here."""
    document = _read_report(path)
    id = read_text(document, "run_id")
    whole, _, part = id.partition("/")
    stored = runs / whole / (f"parts/{part}" if part else "") if _ID.fullmatch(id) else None
    if stored is not None and (stored / "run.json").is_file():
        run = RunDir(stored)
        manifest = run.read_manifest()
        same = (
            manifest.spec_digest == read_text(document, "spec_digest") if read_text(document, "spec_digest") else True
        )
        if same and manifest.started == read_text(document, "started"):
            return read_run_sessions(run, folder, environ=environ, failed_only=True)
    why = "a report has neither the faults of a trial nor the results of its tools"
    raise UsageError(
        f"run {id} of {path} is not stored here, and {why}",
        hint="export it on the machine that ran it",
        code="run-unusable",
    )


def _build_sessions(traced: Sequence[TracedTrial], run: str, outcome: RunOutcome, contract: str) -> SessionsFound:
    sessions: list[RecordedSession] = []
    left_out: list[LeftOutTrace] = []
    notes: list[str] = []
    responses = _index_responses(outcome) if traced else {}
    for trial in traced:
        label = f"{outcome.run.name}: {trial.trial.scenario.name}"
        session = build_session(trial, run=run, name=label, contract=contract, known=responses)
        if isinstance(session, LeftOutTrace):
            left_out.append(session)
        else:
            sessions.append(session.session)
            notes += session.notes
    return SessionsFound(tuple(sessions), tuple(left_out), tuple(notes))


def _index_responses(outcome: RunOutcome) -> dict[str, RecordedResponse]:
    """Return the results of tool calls without faults, by each identity of the call."""
    responses: dict[str, RecordedResponse] = {}
    for trial in outcome.cells.read_traced():
        for event, response in list_replies(trial.seen):
            if not event.fault and not response.failed and not explain_unstorable(response):
                for identity in build_identities(event):
                    responses.setdefault(identity, response)
    return responses


def _read_report(path: Path) -> Any:
    wrong = f"{path} is not a JSON report of Holdfast"
    hint = "pass a report written with -o report.json, or the id of a run"
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(
                f"{path} is larger than {_LARGEST >> 20} MB", hint="pass the run's id", code="run-unusable"
            )
        document = msgspec.json.decode(path.read_bytes())
    except OSError as refused:
        raise UsageError(f"cannot read {path}: {refused.strerror}", code="file-unusable") from refused
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as broken:
        raise UsageError(wrong, hint=hint, code="run-unusable") from broken
    if isinstance(number := read_at(document, "format"), int) and number > JSON:
        again = "use the version of Holdfast that wrote it, or pass the run's id"
        raise UsageError(format_too_new(str(path), number, JSON), hint=again, code="run-unusable")
    if not read_text(document, "run_id") or not isinstance(read_at(document, "parts"), dict):
        raise UsageError(wrong, hint=hint, code="run-unusable")
    return document
