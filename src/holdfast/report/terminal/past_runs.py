"""Stored runs on a terminal: as a table, and the runs of one file over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from holdfast.folders import shorten_path
from holdfast.report.safe import Paint, count_columns, pad, shorten, to_one_line
from holdfast.report.wording import SIGNS, format_count, format_exit_code, format_number
from holdfast.store.past_run import UNENDED, PastRun, RuleTrend, build_rule_trends, drop_explained_cases

HEADS = ("run", "started (UTC)", "part", "spec", "score", "verdict", "trials", "commit")
_SPEC = 3
_LEAST = 12
"""Minimum width of a spec's path, however narrow the screen is."""


def format_table(runs: Sequence[PastRun], width: int, paint: Paint) -> Iterator[str]:
    """Yield one line per run, in the given order; below a run that cannot be shown, the reason."""
    rows = [build_cells(run) for run in runs]
    wide = [max(count_columns(row[at]) for row in (HEADS, *rows)) for at in range(len(HEADS))]
    wide[_SPEC] = max(_LEAST, min(wide[_SPEC], width - sum(wide) + wide[_SPEC] - 2 * (len(HEADS) - 1)))
    yield paint(_format_line(HEADS, wide), "dim")
    for run, row in zip(runs, rows, strict=True):
        yield _paint_line(row, wide, paint)
        if note := run.note or UNENDED.get(run.state):
            yield paint(f"  {to_one_line(note)}", "dim")


def build_cells(run: PastRun) -> tuple[str, ...]:
    """Return the table's cells for a run."""
    plain = run.score is not None or not run.cases or run.shard
    score = format_number(run.score) if plain else f"{run.cases_passed}/{run.cases} cases"
    spec = to_one_line(shorten_path(run.spec)) if run.spec else "–"
    trials = str(run.trials) if run.ended else "–"
    part = run.part if run.whole or not run.part else f"{run.part}, partial"
    commit = run.short_commit or "–"
    return (run.id, format_time(run), part or "–", spec, score, format_verdict(run), trials, commit)


def format_time(run: PastRun) -> str:
    """Return the start time, to the minute."""
    return run.started[:16].replace("T", " ") or "–"


def format_verdict(run: PastRun) -> str:
    """Return one word, as at the end of the run's summary."""
    if run.exit_code is None:
        return run.state or ("unfinished" if run.part else "unreadable")
    return format_exit_code(run.exit_code, is_shard=bool(run.shard))


def _format_line(row: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(pad(shorten(cell, room), room) for cell, room in zip(row, wide, strict=True)).rstrip()


def _paint_line(row: Sequence[str], wide: Sequence[int], paint: Paint) -> str:
    word = row[5]
    line = _format_line(row, wide)
    at = line.rfind(word)
    return line if at < 0 else line[:at] + paint(word, word) + line[at + len(word) :]


BAR = 20
"""Columns of a bar for a score of 100."""


class Trend(Struct, frozen=True):
    """One part of one file over time."""

    spec: str
    part: str
    runs: tuple[PastRun, ...]
    """Oldest first."""
    rules: tuple[RuleTrend, ...]
    left_out: int = 0
    """Runs of a selection, and incomplete runs."""


def build_trends(runs: Sequence[PastRun], spec: str, limit: int | None = None) -> list[Trend]:
    """Return each part of that file with runs; the newest `limit` complete runs."""
    of_file = sorted((run for run in runs if run.spec == spec), key=lambda run: run.order)
    trends = []
    for part in dict.fromkeys(run.part for run in of_file):
        every = [run for run in of_file if run.part == part]
        points = [run for run in every if run.is_point]
        newest = tuple(points[-limit:] if limit else points)
        trends.append(Trend(spec, part, newest, tuple(build_rule_trends(newest)), len(every) - len(points)))
    return trends


def format_trend(trend: Trend, paint: Paint, rule: str | None = None) -> Iterator[str]:
    """Yield the scores as bars, then the rules that changed; for a selected rule every scenario."""
    yield f"{paint(to_one_line(trend.spec), 'bold')}   {trend.part}   {format_count(len(trend.runs), 'complete run')}"
    if trend.left_out:
        yield paint(f"  {format_count(trend.left_out, 'run')} not shown: partial or unfinished", "dim")
    wide = max((len(run.id) for run in trend.runs), default=0)
    for run in trend.runs:
        yield _format_run(run, wide, paint)
    visible = [one for one in trend.rules if (one.changed if rule is None else one.rule == rule)]
    visible = drop_explained_cases(visible)
    wide = max((count_columns(_format_name(one)) for one in visible), default=0)
    if visible:
        yield ""
    for one in sorted(visible, key=lambda one: (one.outcomes[-1] != "fail", one.rule, one.scenario)):
        signs = "".join(SIGNS[outcome] if outcome else " " for outcome in one.outcomes)
        yield f"  {pad(_format_name(one), wide)}  {signs}  {format_change(one)}".rstrip()
    if rule is None and trend.runs and not visible:
        yield paint("  no rule went from pass to fail or back", "dim")


def _format_name(one: RuleTrend) -> str:
    return to_one_line(f"{one.rule} in {one.scenario}")


def _format_run(run: PastRun, wide: int, paint: Paint) -> str:
    word = format_verdict(run)
    score = format_number(run.score) if run.score is not None or not run.cases else f"{run.cases_passed}/{run.cases}"
    bar = pad("━" * round((run.level or 0.0) / 100 * BAR), BAR)
    commit = pad(run.short_commit or "–", 9)
    return f"  {pad(run.id, wide)}  {format_time(run)}  {commit} {score:>7}  {bar}  {paint(word, word)}"


def format_change(one: RuleTrend) -> str:
    """Return the run and commit since which it fails."""
    if not one.failed_in:
        return ""
    passed = _format_place(one.passed_in, one.passed_commit, one.passed_dirty)
    failed = _format_place(one.failed_in, one.failed_commit, one.failed_dirty)
    if one.mended_in:
        return f"failed from {failed} to {one.mended_in}"
    return f"passed in {passed}, fails since {failed}"


def _format_place(run: str, commit: str, dirty: bool) -> str:
    changed = ", with uncommitted changes" if dirty else ""
    return f"{run} ({commit[:8]}{changed})" if commit else run
