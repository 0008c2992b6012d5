"""Compares a multi-part run with a baseline, which decides, and with the last good run, which is only mentioned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.errors import HoldfastError, UsageError, UserError
from holdfast.model.spec import Spec
from holdfast.report.wording import format_count
from holdfast.runner.past.comparison import compare_runs
from holdfast.runner.past.history import find_regressions, open_history
from holdfast.runner.whole import read_overall
from holdfast.score.comparison import RuleComparison
from holdfast.score.resilience import BROKEN, INTERRUPTED, VIOLATED, Reason
from holdfast.store.past_run import RuleTrend
from holdfast.store.run_folders import NEWEST, list_stored_runs
from holdfast.store.rundir import RunDir

LISTED = 5
"""Regressions and rules listed one by one."""


def find_baseline(runs: Path, name: str, spec: Spec, but_for: RunDir | None = None) -> RunDir | None:
    """Return the run to compare a new one with: the named run, or the last complete ci run of the same file.

    Passing runs are preferred; None if there is none. UsageError if the named run does not exist, has one part, or is
    of another file.
    """
    original = Path(spec.path).resolve()
    if name in NEWEST:
        ended = [run for run in map(RunDir, reversed(list_stored_runs(runs))) if _is_comparable(run, original, but_for)]
        passing = (run for run in ended if (overall := read_overall(run)) and overall.passed)
        return next(passing, ended[0] if ended else None)
    baseline = RunDir.find(runs, name)
    manifest = baseline.read_manifest()
    if manifest.original != original and manifest.spec_digest != spec.digest:
        problem = f"--baseline {name}: run {baseline.id} is from another file, {manifest.spec_path}"
        raise UsageError(
            problem, code="runs-incomparable", hint="name a run of the same file; holdfast runs lists them"
        )
    if not manifest.parts:
        raise UsageError(
            f"--baseline {name}: run {baseline.id} covers only one part",
            code="runs-incomparable",
            hint="name a run of holdfast ci",
        )
    return baseline


def _is_comparable(run: RunDir, original: Path, but_for: RunDir | None) -> bool:
    """Return whether it is a complete ci run of the file."""
    try:
        overall = read_overall(run) if but_for is None or run.path != but_for.path else None
    except UserError:  # a damaged or forged run is compared with nothing
        return False
    if overall is None or overall.exit_code == INTERRUPTED:
        return False
    return run.read_manifest().original == original


def compare_baseline(baseline: RunDir, whole: RunDir, environ: Mapping[str, str]) -> tuple[list[Reason], list[str]]:
    """Return the rules that got worse since the baseline, which decide the verdict, and notes."""
    try:
        comparison = compare_runs(baseline, whole, environ=environ)
    except HoldfastError as refused:
        return [Reason(BROKEN, f"the baseline {baseline.id} could not be compared: {refused}", "baseline-unusable")], []
    reasons = [
        Reason(
            VIOLATED,
            f"{_format_rule(one)} is worse than in run {baseline.id}: {_format_change(one)}",
            "worse-than-baseline",
        )
        for one in comparison.select_rules("worse")
    ]
    notes = [
        f"{_format_rule(one)} is better than in run {baseline.id}: {_format_change(one)}"
        for one in comparison.select_rules("better")
    ]
    unsure = comparison.select_rules("cannot tell")
    notes += [
        f"{_format_rule(one)}: cannot tell whether it changed since run {baseline.id}: "
        f"{_format_change(one)}{_format_more(one)}"
        for one in unsure[:LISTED]
    ]
    if len(unsure) > LISTED:
        notes.append(
            f"undecided rules not listed here: {len(unsure) - LISTED}; see holdfast compare {baseline.id} {whole.id}"
        )
    left_out = [*comparison.left_out, *comparison.notes]
    if not reasons and not notes and not left_out:
        notes.append(f"no rule differs from run {baseline.id}")
    notes += [f"compared with run {baseline.id}: {text}" for text in left_out]
    alone = comparison.only_before + comparison.only_after
    if alone:
        notes.append(f"{format_count(alone, 'prompt')} decided in one of the runs only: not compared")
    return reasons, notes


def _format_rule(one: RuleComparison) -> str:
    return f"{one.part}: {one.rule}" if one.part else one.rule


def _format_change(one: RuleComparison) -> str:
    passed = f"{one.passed_before} of {one.pairs} passed then, {one.passed_after} now"
    more = f" and {len(one.obeyed) - LISTED} more" if len(one.obeyed) > LISTED else ""
    obeyed = f"; obeyed now but not before: {', '.join(one.obeyed[:LISTED])}{more}" if one.obeyed else ""
    chance = "exact" if one.p is None else f"p {one.p:.2g}, {one.p_holm:.2g} for all rules"
    return f"{passed} ({chance}){obeyed}"


def _format_more(one: RuleComparison) -> str:
    return "" if one.more_prompts is None else f"; about {one.more_prompts} more prompts would show it"


def _format_since(one: RuleTrend) -> str:
    if not one.failed_commit:
        return ""
    if one.failed_dirty:
        place = f"run {one.failed_in}, which had uncommitted changes on top of commit {one.failed_commit[:8]}"
        return f"; it fails since {place}"
    return f"; it fails since commit {one.failed_commit[:8]}"


def describe_regressions(runs: Path, ids: Sequence[str]) -> list[str]:
    """Describe rules that passed in the last good run of a part and fail now, with the commit at which that began."""
    notes: list[str] = []
    try:
        history = open_history(runs)
        for id in ids:
            good, worse = find_regressions(history, id)
            notes += [
                f"{id}: {one.rule} in {one.scenario} passed in run {good}, the last good one" + _format_since(one)
                for one in worse[:LISTED]
            ]
            if len(worse) > LISTED:
                notes.append(f"{id}: {len(worse) - LISTED} more rules that passed in run {good} fail now")
    except (HoldfastError, OSError) as refused:
        notes.append(f"the history could not be read: {refused}")
    return notes
