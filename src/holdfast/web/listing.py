"""The list of runs and the line of their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.report.trend import trends
from holdfast.store.past_run import PastRun
from holdfast.web.address_query import AddressQuery
from holdfast.web.notes import KeptNote
from holdfast.web.project import Project
from holdfast.web.run_row import run_row, verdict_of

LIMIT, MOST = 100, 1_000
POINTS = 500
"""Of each part in the chart: the newest."""


def listing(project: Project, query: AddressQuery) -> dict[str, Any]:
    """A page of the runs that were asked for, the newest first."""
    known = project.list.known()
    whole = known.whole
    notes = project.notes.all()
    found = list(filter(_wanted(query, notes), whole))
    offset, limit = query.number("offset", 0, 10**9), query.number("limit", LIMIT, MOST)
    rows = []
    for run in found[offset : offset + limit]:
        row = run_row(run, project.runs, notes)
        row["parts"] = [run_row(part, project.runs, notes) for part in known.parts(run.id)]
        rows.append(row)
    return {
        "project": project.name,
        "total": len(whole),
        "matching": len(found),
        "indexing": known.left,
        "trouble": known.trouble,
        "specs": sorted({run.spec for run in whole if run.spec}),
        "runs": rows,
    }


def trend(project: Project, query: AddressQuery) -> dict[str, Any]:
    """The history of one file, else of the newest run's, as `holdfast trend` has it: by part, the oldest run first."""
    runs = project.list.known().runs
    spec = query.text("spec") or next((run.spec for run in runs if run.spec), "")
    found = trends(runs, spec, POINTS)
    last = [(one.runs[-1].order[0], "/" not in one.runs[-1].id, one.part) for one in found if one.runs]
    return {
        "spec": spec,
        "newest": max(last)[2] if last else "",
        "parts": [
            {"part": one.part, "left_out": one.left_out, "points": [_point(run) for run in one.runs]} for one in found
        ],
    }


def _point(run: PastRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "started": run.started,
        "score": run.score,
        "level": run.level,
        "cases": run.cases,
        "cases_passed": run.cases_passed,
        **run.shown_interval,
        "verdict": verdict_of(run),
        "commit": run.short_commit,
    }


def _wanted(query: AddressQuery, notes: Mapping[str, KeptNote]) -> Callable[[PastRun], bool]:
    """Whether a run is one of those that are asked for."""
    spec, verdict, mark = query.text("spec"), query.text("verdict"), query.text("mark")
    text = query.text("q").casefold()
    tests: list[Callable[[PastRun], bool]] = []
    if spec:
        tests.append(lambda run: run.spec == spec)
    if verdict:
        tests.append(lambda run: verdict_of(run) == verdict)
    if mark:
        tests.append(lambda run: run.id in notes and notes[run.id].mark == mark)
    if text:
        tests.append(lambda run: any(text in said.casefold() for said in _said(run)))
    return lambda run: all(test(run) for test in tests)


def _said(run: PastRun) -> Iterator[str]:
    yield from (run.id, run.spec, run.part, run.commit, run.branch, run.started, run.note, verdict_of(run))
    yield from run.critical_failed
