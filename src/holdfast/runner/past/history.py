"""The history of a project's runs, each read as a report would show it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from holdfast.errors import HoldfastError
from holdfast.model.verdict import Outcome
from holdfast.plan.select import EVERYTHING
from holdfast.report.cases import format_head
from holdfast.report.cases import get_outcome as case_outcome
from holdfast.report.wording import format_column
from holdfast.runner.outcome import RunOutcome, load_run
from holdfast.runner.whole import OVERALL, read_overall
from holdfast.store.history import History
from holdfast.store.past_run import CASES, PastCell, PastRun, RuleTrend, build_rule_trends, drop_explained_cases
from holdfast.store.rundir import Manifest, RunDir
from holdfast.store.seal_check import check

SEVERAL = "ci"
"""The part name of a run with several parts."""


def open_history(runs: Path) -> History:
    """Return the updated history of the runs in that folder."""
    history = History(runs, read_past_run)
    history.update()
    return history


def find_regressions(history: History, id: str) -> tuple[str, list[RuleTrend]]:
    """Return the last good run of the same file and part before this one, and the rules that fail since; empty if there
    is none.
    """
    runs = sorted(history.read_runs(), key=lambda run: run.order)
    now = next((run for run in runs if run.id == id), None)
    if now is None:
        return "", []
    line = [run for run in runs if (run.spec, run.part) == (now.spec, now.part) and run.order <= now.order]
    good = next((run for run in reversed(line[:-1]) if run.good), None)
    if good is None:
        return "", []
    ids = [run.id for run in line[line.index(good) :] if run.is_point or run is now]
    with_cells = {run.id: run for run in history.read_runs(cells_of=ids)}
    trends = build_rule_trends([with_cells[id] for id in ids])
    return good.id, drop_explained_cases(
        one for one in trends if one.outcomes[0] == "pass" and one.outcomes[-1] == "fail"
    )


def read_past_run(run: RunDir) -> PastRun:
    """Return the history row of a stored run; if the run cannot be shown, the row's note says why."""
    known = PastRun(run.id)
    try:
        manifest = run.read_manifest()
        known = _read_begun(run, manifest)
        if (run.path / OVERALL).is_file() or manifest.parts:
            return _read_several(run, known)
        if run.read_end() is None:
            check(run)
            return known
        outcome = load_run(run, environ=os.environ)
        return build_past_run(run, outcome)
    except (HoldfastError, OSError) as refused:
        reason = f"{refused.strerror}: {refused.filename}" if isinstance(refused, OSError) else str(refused)
        return replace(known, note=reason)


def build_past_run(run: RunDir, outcome: RunOutcome) -> PastRun:
    """Return the history row of a run whose outcome is in memory."""
    score, view = outcome.score, outcome.run
    whole = read_overall(RunDir(run.path.parent.parent)) if "/" in run.id else None
    cases = [row.case.status for row in view.cases]
    return replace(
        _read_begun(run, run.read_manifest()),
        duration_s=view.duration_s,
        ended=True,
        complete=view.complete,
        score=score.value,
        low=score.interval.low if score.interval else None,
        high=score.interval.high if score.interval else None,
        shows_interval=score.interval is not None and score.interval.is_shown,
        overall=whole.score if whole else None,
        passed=score.passed,
        in_failed_run=whole is not None and not whole.passed,
        exit_code=score.exit_code,
        trials=score.trials,
        judged=score.judged,
        total=score.total,
        counts=score.counts,
        cases=len(cases),
        cases_passed=cases.count("pass"),
        critical_failed=score.critical_failed,
        calls=score.spent.calls if score.spent else 0,
        cost_usd=score.spent.cost_usd if score.spent else None,
        cells=tuple(_build_cells(outcome)),
    )


def _build_cells(outcome: RunOutcome) -> Iterator[PastCell]:
    by_head: dict[str, list[Outcome]] = {}
    for case_row in outcome.run.cases:
        by_head.setdefault(format_head(case_row.case), []).append(case_outcome(case_row.case))
    order: tuple[Outcome, ...] = ("fail", "error", "unproven", "pass")
    for where, outcomes in by_head.items():
        passes, fails, errors, unproven = (outcomes.count(word) for word in ("pass", "fail", "error", "unproven"))
        worst = next(word for word in order if word in outcomes)
        yield PastCell(CASES, where, worst, False, passes, fails, errors, unproven)
    for row in outcome.cells:
        cell = row.cell
        if cell.outcome != "n/a":
            counts = (cell.passes, cell.fails, cell.errors, cell.unproven)
            yield PastCell(cell.invariant, format_column(cell), cell.outcome, cell.critical, *counts)


def _describe_part(manifest: Manifest) -> str:
    """Return the part, plus weather and shard if they were selected: other weather is not a regression."""
    options = manifest.options
    weather = options.chaos_profile or ("chaos" if options.chaos else "")
    kind = options.hunt.purpose if options.part == "hunt" else options.part
    part = f"{kind} in {weather}" if weather else kind
    return f"{part} shard {options.select.shard}" if options.select.shard else part


def _read_begun(run: RunDir, manifest: Manifest) -> PastRun:
    return PastRun(
        id=run.id,
        part=_describe_part(manifest),
        shard=str(manifest.options.select.shard or ""),
        started=manifest.started,
        spec=str(manifest.original),
        spec_digest=manifest.spec_digest,
        agent_digest=manifest.agent_digest,
        seed=manifest.seed,
        version=manifest.version,
        commit=manifest.commit,
        dirty=manifest.dirty,
        branch=manifest.branch,
        whole=manifest.options.select == EVERYTHING and not manifest.options.fail_fast,
    )


def _read_several(run: RunDir, known: PastRun) -> PastRun:
    """Return the row of a run with several parts: overall score and verdict."""
    overall, parts = read_overall(run), [read_past_run(part) for part in run.parts]
    ended = overall is not None
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return replace(
        known,
        part=known.part if known.shard else SEVERAL,
        duration_s=sum(part.duration_s for part in parts),
        ended=ended,
        complete=ended and all(part.complete for part in parts),
        score=overall.score if overall else None,
        overall=overall.score if overall else None,
        passed=overall.passed if overall else False,
        exit_code=overall.exit_code if overall else None,
        trials=sum(part.trials for part in parts),
        judged=sum(part.judged for part in parts),
        total=sum(part.total for part in parts),
        cases=sum(part.cases for part in parts),
        cases_passed=sum(part.cases_passed for part in parts),
        critical_failed=tuple(name for part in parts for name in part.critical_failed),
        calls=sum(part.calls for part in parts),
        cost_usd=sum(costs) if costs else None,
    )
