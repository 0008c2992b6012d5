"""`--lf`: selects what failed in its most recent trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from holdfast.errors import UserError
from holdfast.model.run import Run
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.verdict import Verdict
from holdfast.plan.matrix import select_case_rules
from holdfast.plan.select import EVERYTHING, FailedTask, build_failed_task
from holdfast.report.cases import format_head
from holdfast.report.decisive import Decisive
from holdfast.runner.outcome import load_run
from holdfast.store.record import read_trials, read_verdicts
from holdfast.store.run_folders import list_parts, list_stored_runs
from holdfast.store.rundir import RunDir, list_verdict_files
from holdfast.store.seal_check import check


def find_failed(runs: Path, spec: Spec, environ: Mapping[str, str]) -> tuple[str, tuple[FailedTask, ...]]:
    """Return the newest run of this file by the same command, and what failed most recently; the id is empty if there
    is none.

    A partial run says nothing about the rest, so earlier runs count, back to the last complete one. A run whose files
    were changed says nothing at all.
    """
    newest, is_failing = "", dict[FailedTask, bool]()
    rules = {rule.id for rule in spec.invariants}
    for run in list_runs(runs, spec):
        try:
            check(run)
        except UserError:
            continue
        newest = newest or run.id
        for task, failed in _find_failed_tasks(run, spec, environ, rules).items():
            is_failing.setdefault(task, failed)
        options, ended = run.read_manifest().options, run.read_end()
        if options.select == EVERYTHING and not options.fail_fast and ended is not None and ended.complete:
            break
    return newest, tuple(task for task, failed in is_failing.items() if failed)


def list_runs(runs: Path, spec: Spec, *, every_part: bool = False) -> Iterator[RunDir]:
    """Yield the runs of this file, newest first, of the spec's part or of every part; a multi-part run yields each
    part.
    """
    for path in (one for run in reversed(list_stored_runs(runs)) for one in list_parts(run) or (run,)):
        run = RunDir(path)
        try:
            manifest = run.read_manifest()
        except (UserError, OSError):
            continue  # written by another version, or edited by hand
        same_part = every_part or manifest.options.part == spec.part
        if manifest.original == Path(spec.path).resolve() and same_part:
            yield run


def _find_failed_tasks(run: RunDir, spec: Spec, environ: Mapping[str, str], rules: Set[str]) -> dict[FailedTask, bool]:
    if not spec.by_cases:
        return _read_failed_trials(run, rules)
    try:
        return read_failed_cases(run, spec, environ)
    except UserError:
        return {}  # it cannot be read any more, so it says nothing


def _read_failed_trials(run: RunDir, rules: Set[str]) -> dict[FailedTask, bool]:
    """Return the cases of its trials, and whether a rule failed or had a harness error."""
    begun = {trial.id: trial for trial in read_trials(run)}
    failed: dict[FailedTask, bool] = {}
    for verdict in _read_last_verdicts(run, rules):
        trial = begun.get(verdict.trial)
        if trial is not None:
            task = build_failed_task(verdict.invariant, trial.scenario, trial.task, trial.params)
            failed[task] = failed.get(task, False) or verdict.outcome in ("fail", "error")
    return failed


def _read_last_verdicts(run: RunDir, rules: Set[str]) -> Iterable[Verdict]:
    """Return the last verdict of each rule on each trial. A rejudging counts, unless its rules are from another
    file.
    """
    last: dict[tuple[str, str], Verdict] = {}
    for path in list_verdict_files(run):
        own = path == run.get_verdict_file()
        judged = (verdict for verdict in read_verdicts(path) if own or verdict.invariant in rules)
        last |= {(verdict.trial, verdict.invariant): verdict for verdict in judged}
    return last.values()


def read_failed_cases(run: RunDir, spec: Spec, environ: Mapping[str, str]) -> dict[FailedTask, bool]:
    """Return the cases that a stored run decided, and whether each failed, by the rules of the current file.

    A run of single rules decides no case, but a case with a failed cell is selected again.
    """
    by_task: dict[FailedTask, bool] = {}
    outcome = load_run(run, environ=environ)
    cases = [row.case for row in outcome.run.cases]
    for case in cases:
        tasks = [task for task in spec.tasks if task.prompt == case.prompt]
        failed = case.status != "pass" and not case.unproven_only
        by_task |= _select_rules(spec, case.scenario, tasks, case.params, failed=failed)
    heads = {format_head(case) for case in cases if case.status == "fail"}
    _add_cells(by_task, spec, outcome.run, Decisive(outcome.run, heads))
    return by_task


def _add_cells(failed: dict[FailedTask, bool], spec: Spec, run: Run, decisive: Decisive) -> None:
    shared = {rule.id for rule in select_case_rules(spec)}
    probes = {rule.id: [Task((probe,), "probe") for probe in rule.probes] for rule in spec.invariants}
    for cell in (row.cell for row in run.cells if row.cell.outcome not in ("n/a", "unproven")):
        bad = cell.outcome != "pass" and decisive.is_decisive(cell)
        if cell.invariant not in shared:
            for task in probes.get(cell.invariant) or spec.tasks:
                failed[build_failed_task(cell.invariant, cell.scenario, task, cell.params)] = bad
        elif bad:
            failed.update(_select_rules(spec, cell.scenario, spec.tasks, cell.params, failed=True))


def _select_rules(
    spec: Spec, scenario: str, tasks: Iterable[Task], params: Mapping[str, Any], *, failed: bool
) -> dict[FailedTask, bool]:
    """Return the selection for one case: every rule runs again."""
    return {
        build_failed_task(rule.id, scenario, task, params): failed for task in tasks for rule in select_case_rules(spec)
    }
