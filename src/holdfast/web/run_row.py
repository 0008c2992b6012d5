"""A run as a row of the list."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from holdfast.report.wording import VERDICTS
from holdfast.store.past_run import SHARD, UNENDED, PastRun
from holdfast.store.run_locks import is_written
from holdfast.store.run_names import run_folder
from holdfast.web.notes import KeptNote

RunState = Literal["running", "ended", "interrupted", "killed", "unreadable"]


def state_of(run: PastRun, runs: Path) -> RunState:
    """What became of it, or whether it is still under way."""
    folder = run_folder(runs, run.id)
    if (run.is_unended or run.exit_code == 2) and is_written(folder):
        return "running"
    if run.is_unended:  # one that has ended just now is not in the list yet
        ended = any(os.path.isfile(folder / name) for name in ("ended.json", "overall.json"))
        return "running" if ended else "killed"
    if run.note:
        return "unreadable"
    return "interrupted" if run.exit_code == 2 else "ended"


def verdict_of(run: PastRun) -> str:
    """In one word; empty while there is none."""
    if not run.ended or run.exit_code is None:
        return ""
    if SHARD in run.part and run.exit_code == 0:
        return "SHARD"
    return VERDICTS.get(run.exit_code, "ERROR")


def run_row(run: PastRun, runs: Path, notes: Mapping[str, KeptNote]) -> dict[str, Any]:
    """What the list shows of it."""
    state, kept = state_of(run, runs), notes.get(run.id)
    return {
        "id": run.id,
        "part": run.part,
        "spec": run.spec,
        "started": run.started,
        "duration_s": run.duration_s,
        "state": state,
        "score": run.score,
        **run.shown_interval,
        "overall": run.overall,
        "verdict": verdict_of(run),
        "passed": run.passed,
        "exit_code": run.exit_code,
        "trials": run.trials,
        "counts": run.counts,
        "cases": run.cases,
        "cases_passed": run.cases_passed,
        "cost_usd": run.cost_usd,
        "calls": run.calls,
        "commit": run.short_commit,
        "branch": run.branch,
        "note": UNENDED["killed"] if state == "killed" else run.note,
        "mark": kept.mark if kept else "",
        "has_note": bool(kept and kept.note),
    }
