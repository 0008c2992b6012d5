"""The list of runs and the chart of their scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from holdfast.report.page.values import pick
from holdfast.report.terminal.past_runs import build_trends
from holdfast.report.wording import format_exit_code
from holdfast.store.past_run import UNENDED, PastRun
from holdfast.store.run_folders import get_run_folder, is_written
from holdfast.web.address import AddressQuery
from holdfast.web.notes import KeptNote
from holdfast.web.opened_runs import Project

RunState = Literal["running", "ended", "interrupted", "killed", "unreadable"]


def get_state(run: PastRun, runs: Path) -> RunState:
    """Return how the run ended, or whether it is still running."""
    folder = get_run_folder(runs, run.id)
    if (run.is_unended or run.exit_code == 2) and is_written(folder):
        return "running"
    if run.is_unended:  # a run that has just ended is not in the list yet
        ended = any(os.path.isfile(folder / name) for name in ("ended.json", "overall.json"))
        return "running" if ended else "killed"
    if run.note:
        return "unreadable"
    return "interrupted" if run.exit_code == 2 else "ended"


def format_verdict(run: PastRun) -> str:
    """Return the verdict in one word; empty while there is none."""
    if not run.ended or run.exit_code is None:
        return ""
    return format_exit_code(run.exit_code, is_shard=bool(run.shard))


def build_run_row(run: PastRun, runs: Path, notes: Mapping[str, KeptNote]) -> dict[str, Any]:
    """Return the row of the run in the list."""
    state, note = get_state(run, runs), notes.get(run.id)
    return {
        **pick(run, "id part spec started duration_s score overall passed exit_code"),
        **pick(run, "trials counts cases cases_passed cost_usd calls branch"),
        "partial": bool(run.part) and not run.whole,
        "state": state,
        **run.interval_ends,
        "verdict": format_verdict(run),
        "commit": run.short_commit,
        "note": UNENDED["killed"] if state == "killed" else run.note,
        "mark": note.mark if note else "",
        "has_note": bool(note and note.note),
    }


LIMIT, MOST = 100, 1_000
POINTS = 500
"""Points per part in the chart: the newest."""


def build_listing(project: Project, query: AddressQuery) -> dict[str, Any]:
    """Return a page of the requested runs, newest first."""
    known = project.list.get_known()
    whole = known.whole
    notes = project.notes.read_all()
    matching = list(filter(_build_filter(query, notes), whole))
    offset, limit = query.get_number("offset", 0, 10**9), query.get_number("limit", LIMIT, MOST)
    rows = []
    for run in matching[offset : offset + limit]:
        row = build_run_row(run, project.runs, notes)
        row["parts"] = [build_run_row(part, project.runs, notes) for part in known.list_parts(run.id)]
        rows.append(row)
    return {
        "project": project.name,
        "total": len(whole),
        "matching": len(matching),
        "indexing": known.left,
        "trouble": known.trouble,
        "specs": sorted({run.spec for run in whole if run.spec}),
        "runs": rows,
    }


def build_trend(project: Project, query: AddressQuery) -> dict[str, Any]:
    """Return the history of one file, by default the newest run's, as in `holdfast trend`: by part, oldest run
    first.
    """
    runs = project.list.get_known().runs
    spec = query.get_text("spec") or next((run.spec for run in runs if run.spec), "")
    every_trend = build_trends(runs, spec, POINTS)
    last = [(one.runs[-1].order[0], "/" not in one.runs[-1].id, one.part) for one in every_trend if one.runs]
    return {
        "spec": spec,
        "newest": max(last)[2] if last else "",
        "parts": [
            {"part": one.part, "left_out": one.left_out, "points": [_build_point(run) for run in one.runs]}
            for one in every_trend
        ],
    }


def _build_point(run: PastRun) -> dict[str, Any]:
    return {
        **pick(run, "id started score cases cases_passed"),
        "level": run.level,
        **run.interval_ends,
        "verdict": format_verdict(run),
        "commit": run.short_commit,
    }


def _build_filter(query: AddressQuery, notes: Mapping[str, KeptNote]) -> Callable[[PastRun], bool]:
    """Return a filter for the requested runs."""
    spec, verdict, mark = query.get_text("spec"), query.get_text("verdict"), query.get_text("mark")
    text = query.get_text("q").casefold()
    tests: list[Callable[[PastRun], bool]] = []
    if spec:
        tests.append(lambda run: run.spec == spec)
    if verdict:
        tests.append(lambda run: format_verdict(run) == verdict)
    if mark:
        tests.append(lambda run: run.id in notes and notes[run.id].mark == mark)
    if text:
        tests.append(lambda run: any(text in words.casefold() for words in _list_searched_texts(run)))
    return lambda run: all(test(run) for test in tests)


def _list_searched_texts(run: PastRun) -> Iterator[str]:
    yield from (run.id, run.spec, run.part, run.commit, run.branch, run.started, run.note, format_verdict(run))
    yield from run.critical_failed
