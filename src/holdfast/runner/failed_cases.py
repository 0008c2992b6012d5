"""`--lf` where cases decide: those that failed, with all of their rules, and cells beside them that decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from holdfast.model.run import Run
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.plan.matrix import case_rules
from holdfast.plan.select import FailedTask, failed_task
from holdfast.report.cases import head
from holdfast.report.decisive import Decisive
from holdfast.runner.stored import look
from holdfast.store.rundir import RunDir


def failed_cases(run: RunDir, spec: Spec, environ: Mapping[str, str]) -> dict[FailedTask, bool]:
    """What a stored run decided, and whether it failed or was an error of ours, for the rules that the file has now.

    A run of single rules decides no case, but one of whose cells failed is asked again.
    """
    seen: dict[FailedTask, bool] = {}
    with closing(look(run, environ=environ)) as outcome:
        cases = [row.case for row in outcome.run.cases]
        for case in cases:
            asked = [task for task in spec.tasks if task.prompt == case.prompt]
            failed = case.status != "pass" and not case.unproven_only
            seen |= _rules_of(spec, case.scenario, asked, case.params, failed=failed)
        heads = {head(case) for case in cases if case.status == "fail"}
        _add_cells(seen, spec, outcome.run, Decisive(outcome.run, heads))
    return seen


def _add_cells(seen: dict[FailedTask, bool], spec: Spec, run: Run, decisive: Decisive) -> None:
    shared = {rule.id for rule in case_rules(spec)}
    probes = {rule.id: [Task((probe,), "probe") for probe in rule.probes] for rule in spec.invariants}
    for cell in (row.cell for row in run.cells if row.cell.outcome not in ("n/a", "unproven")):
        bad = cell.outcome != "pass" and decisive.counts(cell)
        if cell.invariant not in shared:
            for task in probes.get(cell.invariant) or spec.tasks:
                seen[failed_task(cell.invariant, cell.scenario, task, cell.params)] = bad
        elif bad:
            seen.update(_rules_of(spec, cell.scenario, spec.tasks, cell.params, failed=True))


def _rules_of(
    spec: Spec, scenario: str, tasks: Iterable[Task], params: Mapping[str, Any], *, failed: bool
) -> dict[FailedTask, bool]:
    """A case is asked again with every rule."""
    return {failed_task(rule.id, scenario, task, params): failed for task in tasks for rule in case_rules(spec)}
