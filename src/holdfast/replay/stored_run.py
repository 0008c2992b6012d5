"""The trials of a stored run, or of its report, as sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.format_numbers import JSON, too_new
from holdfast.model.run import TracedTrial
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Part
from holdfast.reading.tree import parse
from holdfast.replay.foreign_json import at, items, text
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.trial_session import failures, only_obeyed, trial_session
from holdfast.runner.stored import look
from holdfast.store.rundir import RunDir

_LARGEST = 512 << 20


_ID = re.compile(r"\d+(/[a-z]+)?")
"""The id of a run, or of a part of one, as a report has it."""


class SessionsFound(Struct, frozen=True):
    """Sessions, what was left out, and what is to be said of them."""

    sessions: tuple[RecordedSession, ...] = ()
    left_out: tuple[LeftOutTrace, ...] = ()
    notes: tuple[str, ...] = ()


def run_sessions(
    run: RunDir, folder: Path, *, environ: Mapping[str, str], failed_only: bool, trial: str = ""
) -> SessionsFound:
    """The trials of a run, or of all its parts, as sessions for a folder; `trial` takes those whose ids begin so."""
    contract = contract_path(run.manifest().original, folder)
    every = []
    for part in run.parts or (run,):
        with closing(look(part, environ=environ)) as outcome:
            traced = (one for one in outcome.cells.traced() if one.trial.id.startswith(trial))
            found = _found(_wanted(traced, failed_only), run.id, outcome.run.name, contract)
            every.append(replace(found, notes=(*found.notes, *_other_rules(found, outcome.run.part))))
    return gathered(every)


def gathered(found: Iterable[SessionsFound]) -> SessionsFound:
    """Several as one; of two trials with one id, which ask the same, the first."""
    every = list(found)
    sessions = {one.id: one for each in reversed(every) for one in reversed(each.sessions)}
    return SessionsFound(
        tuple(sessions[id] for id in dict.fromkeys(one.id for each in every for one in each.sessions)),
        tuple(one for each in every for one in each.left_out),
        tuple(one for each in every for one in each.notes),
    )


def _other_rules(found: SessionsFound, part: Part) -> Iterator[str]:
    """Mutations and prompts in chaos are held to the rules of run, sessions to a contract."""
    if found.sessions and part in ("mutation", "chaos"):
        yield f"what failed in {part} failed rules of run; sessions are held to a contract: see that it has such rules"


def contract_path(spec: Path, folder: Path) -> str:
    """The spec's contract as a session in the folder names it; empty if it has none, or is gone."""
    if not spec.is_file():
        return ""
    root, _ = parse(spec.read_text(encoding="utf-8", errors="replace"))
    has = root is not None and root.kind == "map" and root.has("contract")
    return os.path.relpath(spec.resolve(), folder.resolve()) if has else ""


def report_sessions(path: Path, runs: Path, folder: Path, *, environ: Mapping[str, str]) -> SessionsFound:
    """The failed trials of a JSON report: from the run it is of, where that is stored here, else from the report."""
    document = _report(path)
    id = text(document, "run_id")
    whole, _, part = id.partition("/")
    stored = runs / whole / (f"parts/{part}" if part else "") if _ID.fullmatch(id) else None
    if stored is not None and (stored / "run.json").is_file():
        run = RunDir(stored)
        known = run.manifest()
        same = known.spec_digest == text(document, "spec_digest") if text(document, "spec_digest") else True
        if same and known.started == text(document, "started"):
            return run_sessions(run, folder, environ=environ, failed_only=True)
    sessions = tuple(_reported(document, id, folder))
    note = f"run {id} is not stored here: what its tools answered is not in the report, and so not in the sessions"
    return SessionsFound(sessions, notes=(note,) if sessions else ())


def _wanted(traced: Iterable[TracedTrial], failed_only: bool) -> Iterator[TracedTrial]:
    for one in traced:
        if one.trial.kind == "contract" and (not failed_only or failures(one) or only_obeyed(one)):
            yield one


def _found(traced: Iterable[TracedTrial], run: str, name: str, contract: str) -> SessionsFound:
    sessions: list[RecordedSession] = []
    left_out: list[LeftOutTrace] = []
    notes: list[str] = []
    for one in traced:
        label = f"{name}: {one.trial.scenario}"
        made = trial_session(one, run=run, name=label, contract=contract)
        if isinstance(made, LeftOutTrace):
            left_out.append(made)
        else:
            sessions.append(made.session)
            notes += made.notes
    return SessionsFound(tuple(sessions), tuple(left_out), tuple(notes))


def _report(path: Path) -> Any:
    wrong = f"{path} is no JSON report of Holdfast"
    hint = "name a report that was written by -o report.json, or a run by its id"
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is larger than {_LARGEST >> 20} MB", hint="name the run by its id")
        document = msgspec.json.decode(path.read_bytes())
    except OSError as refused:
        raise UsageError(f"cannot read {path}: {refused.strerror}") from refused
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as broken:
        raise UsageError(wrong, hint=hint) from broken
    if isinstance(number := at(document, "format"), int) and number > JSON:
        again = "use the version of Holdfast that wrote it, or name the run by its id"
        raise UsageError(too_new(str(path), number, JSON), hint=again)
    if not text(document, "run_id") or not isinstance(at(document, "parts"), dict):
        raise UsageError(wrong, hint=hint)
    return document


def _reported(document: Any, run: str, folder: Path) -> Iterator[RecordedSession]:
    contract = contract_path(Path(text(document, "spec_path")), folder)
    seen: set[str] = set()
    for id, prompt, why in (*_cells(document), *_cases(document)):
        if id and prompt and id not in seen:
            seen.add(id)
            yield RecordedSession(
                id, (prompt,), source=f"holdfast run {run}", expected_failure=why, contract=contract,
                captured_at=text(document, "started"),
            )  # fmt: skip


def _cells(document: Any) -> Iterator[tuple[str, str, str]]:
    for where in (("contract",), ("contract", "details"), ("chaos",), ("chaos", "details")):
        for cell in items(document, "parts", *where, "cells"):
            for trial in items(cell, "trials"):
                if text(trial, "outcome") == "fail":
                    reason = f"{text(cell, 'invariant')}: {text(trial, 'reason')}"
                    yield text(trial, "id"), text(trial, "prompt"), reason


def _cases(document: Any) -> Iterator[tuple[str, str, str]]:
    for where in (("scenario",), ("scenario", "details"), ("replay",), ("replay", "details")):
        for case in items(document, "parts", *where, "cases"):
            for one in items(case, "replicas"):
                if text(one, "status") == "fail":
                    yield text(one, "trial"), text(one, "prompt"), text(one, "reason")
