"""A spec file as a list of test items: the cells of its contract, the cases of its task.

Each is decided by a run of the trials that it needs; one run can decide several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.entry_points import Caller, format_details, run_blocking
from holdfast.api.functions import build_work
from holdfast.api.job import load_part
from holdfast.api.loaded_spec import LoadedSpec, load_source
from holdfast.api.run_result import RunResult
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.codec import encode_canonical
from holdfast.model.codes import RunWarning
from holdfast.model.run import CaseRow, CellRow
from holdfast.plan import Plan, RunOptions, Select, build_plan
from holdfast.plan.matrix import select_case_rules
from holdfast.plan.select import SelectedCell
from holdfast.report import wording
from holdfast.report.safe import make_visible, to_one_line
from holdfast.report.terminal import failures
from holdfast.spec.references import format_param

ItemWord = Literal["pass", "fail", "error", "unproven"]


class FileItem(Struct, frozen=True):
    """A rule in a scenario, or the task in one."""

    name: str
    part: Literal["contract", "scenario"]
    scenario: str
    invariant: str
    """Empty: the task in this scenario, with all its rules."""
    params: str
    """Canonical JSON."""
    line: int


class ItemOutcome(Struct, frozen=True):
    """The result of an item, and why."""

    word: ItemWord
    lines: tuple[str, ...] = ()
    run: str = ""
    """The folder of the run that decided it."""
    warnings: tuple[RunWarning, ...] = ()


_Key = tuple[str, str, str, str]


class SpecFile:
    """Loads a file, lists its items, and decides them on demand."""

    def __init__(self, path: Path, runs: Path, *, seed: int | None = None, replicas: int | None = None) -> None:
        self._path = path
        self._runs = runs
        self._options = RunOptions(seed=seed, replicas=replicas)
        self._specs: dict[str, LoadedSpec] = {}
        self._plans: dict[str, Plan] = {}
        self._decided: dict[_Key, ItemOutcome] = {}
        self._broken: dict[str, ItemOutcome] = {}
        """By part: why it could not run at all."""
        self._items: list[FileItem] = []
        self._preflighted: set[str] = set()
        """Parts whose agent was asked once without faults."""
        self.no_items = ""
        """For a file without items: why, and which command runs it."""

    def list_items(self) -> list[FileItem]:
        """Return every item, in the order of the plan; SpecError or UsageError if the file cannot be used.

        Empty for a file with only mutations, chaos or replays: `no_items` says why.
        """
        for part in self._choose_parts():
            self._specs[part] = load_source(self._path, self._options, self._caller, part)
            self._plans[part] = build_plan(self._specs[part].spec)
        items: dict[str, FileItem] = {}
        for item in (*self._list_cases(), *self._list_cells()):
            name = item.name
            while name in items:
                name += "'"
            items[name] = replace(item, name=name)
        if not items and not self.no_items:
            raise UsageError(
                f"{self._path}: no rule applies in any scenario", hint="see each rule's `when`", code="nothing-to-run"
            )
        self._items = list(items.values())
        return self._items

    def decide(self, item: FileItem, wanted: Sequence[FileItem], *, fail_fast: bool = False) -> ItemOutcome:
        """Return the result of an item. If it is not known yet, all wanted items of its part are run."""
        if item.part in self._broken:
            return self._broken[item.part]
        if _build_key(item) not in self._decided:
            undecided = [one for one in wanted if one.part == item.part and _build_key(one) not in self._decided]
            self._run(item.part, undecided, fail_fast=fail_fast)
        if _build_key(item) not in self._decided and item.part not in self._broken:
            self._run(item.part, [item], fail_fast=False)  # fail-fast ended the run before it
        return self._broken.get(item.part) or self._decided[_build_key(item)]

    # -- items ---------------------------------------------------------------------------------------
    @property
    def _caller(self) -> Caller:
        return Caller(str(self._path), 1)

    def _choose_parts(self) -> tuple[Literal["contract", "scenario"], ...]:
        """Choose the parts that pytest runs: the task in every scenario, and a contract with other prompts."""
        first, _ = load_part(self._path, replace(self._options, part="ci"))
        if "scenario" in first.declares:
            return ("scenario", "contract") if "contract" in first.declares and first.has_golden else ("scenario",)
        if first.declares and "contract" not in first.declares:
            others = f"holdfast ci {self._path} runs its other parts: {', '.join(first.declares)}"
            self.no_items = f"no contract and no task with rules: {others}"
            return ()
        return ("contract",)

    def _list_cases(self) -> Iterator[FileItem]:
        for spec in [loaded.spec for part, loaded in self._specs.items() if part == "scenario"]:
            for scenario, params in product(spec.scenarios, spec.params):
                line = scenario.position.line if scenario.position is not None else 1
                yield _build_item("case", "scenario", scenario.name, "", params, line)

    def _list_cells(self) -> Iterator[FileItem]:
        """Yield the cells that no case decides: for a task, those of rules with their own trials."""
        for part, plan in self._plans.items():
            spec = plan.spec
            shared = {rule.id for rule in select_case_rules(spec)} if part == "scenario" else set()
            for key in plan.cells:
                if key.invariant not in shared and plan.count_expected(key):
                    rule = spec.get_invariant(key.invariant)
                    line = rule.position.line if rule.position is not None else 1
                    yield _build_item(rule.id, part, key.scenario, rule.id, spec.params[key.params], line)

    # -- running ------------------------------------------------------------------------------------
    def _run(self, part: str, items: Sequence[FileItem], *, fail_fast: bool) -> None:
        spec = self._specs[part]
        is_complete = not any(one.part == part and one not in items for one in self._items)
        select = Select() if is_complete else Select(cells=tuple(self._select_cells(items)))
        preflight = part not in self._preflighted or spec.spec.agent.isolation != "fresh"
        options = replace(self._options, select=select, fail_fast=fail_fast, preflight=preflight)
        try:
            with run_blocking(build_work(spec, options, self._caller, runs=self._runs)) as result:
                self._store_outcomes(part, result)
        except HoldfastError as broken:
            self._broken[part] = ItemOutcome("error", (f"error: {make_visible(str(broken))}", *format_details(broken)))
            return
        self._preflighted.add(part)

    def _select_cells(self, items: Sequence[FileItem]) -> Iterator[SelectedCell]:
        """Yield the cells of these items, and all that are judged on the same trials anyway."""
        # One trial serves all rules of a case, so a selected rule brings along the others: they are judged in any case,
        # and the next item finds its result.
        cells: dict[SelectedCell, None] = {}
        for item in items:
            shared = [rule.id for rule in select_case_rules(self._plans[item.part].spec)]
            for rule in shared if item.invariant in ("", *shared) else [item.invariant]:
                cells[SelectedCell(rule, item.scenario, item.params)] = None
        yield from cells

    def _store_outcomes(self, part: str, result: RunResult) -> None:
        run, plan = result.run, self._plans[part]
        for row in run.cells:
            if run.complete or _is_settled(row, plan):
                cell = row.cell
                lines = () if cell.outcome == "pass" else failures.explain_cell(run, row)
                key = (part, cell.invariant, cell.scenario, encode_canonical(cell.params).decode())
                if cell.outcome != "n/a":
                    self._decided[key] = _build_outcome(cell.outcome, wording.format_reason(row), lines, result)
        for case in run.cases:
            if run.complete or case.case.status == "fail":
                key = (part, "", case.case.scenario, encode_canonical(case.case.params).decode())
                self._decided[key] = _decide_case(case, result)


def _is_settled(row: CellRow, plan: Plan) -> bool:
    """Return whether a cell of a run that fail-fast ended is final."""
    cell = row.cell
    decided = cell.passes + cell.fails + cell.errors + cell.unproven
    return cell.outcome == "fail" or decided >= len(plan.get_tasks(cell.invariant)) * plan.spec.replicas


def _decide_case(row: CaseRow, result: RunResult) -> ItemOutcome:
    case = row.case
    lines = () if case.status == "pass" else failures.explain_case(result.run, row)
    if case.status == "pass" and case.scenario in result.score.vacuous:
        return _build_outcome(
            "unproven", "no trial met any of its faults", failures.explain_case(result.run, row), result
        )
    return _build_outcome("unproven" if case.unproven_only else case.status, case.reason, lines, result)


def _build_outcome(word: ItemWord, why: str, explanation: Sequence[str], result: RunResult) -> ItemOutcome:
    """The outcome word and the reason come first, because a list of failures shows those."""
    lines = (f"{word}: {to_one_line(why)}", *explanation, f"  {'run':<11}{result.path}") if word != "pass" else ()
    return ItemOutcome(word, lines, str(result.path), result.warnings)


def _build_item(name: str, part: Any, scenario: str, rule: str, params: dict[str, Any], line: int) -> FileItem:
    values = "".join(f"-{key}={format_param(value)}" for key, value in params.items())
    id = to_one_line(f"{name}[{scenario}{values}]").replace("::", ":")
    return FileItem(id, part, scenario, rule, encode_canonical(params).decode(), line)


def _build_key(item: FileItem) -> _Key:
    return item.part, item.invariant, item.scenario, item.params
