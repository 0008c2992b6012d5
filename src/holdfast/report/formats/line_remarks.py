"""Failures as remarks on lines of the spec, for tools that annotate files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.run import CaseRow, CellRow, Run
from holdfast.model.score import Case
from holdfast.model.spec import Invariant
from holdfast.model.standards import StandardEntry
from holdfast.model.verdict import Outcome
from holdfast.report import cases, standards, wording
from holdfast.report.decisive import Decisive
from holdfast.report.safe import to_one_line
from holdfast.report.terminal.failures import list_unexplained
from holdfast.report.wording import format_report_path, format_verdict

MOST = 10
"""Remarks of each kind: GitHub shows no more per step."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def format_commands(run: Run) -> Iterator[str]:
    """Yield one workflow command per line, worst first; the surplus is counted."""
    file = run.source or run.spec_path
    counts: Counter[str] = Counter()
    left = 0
    for one in list_remarks(run):
        command = _get_command(one)
        if counts[command] < MOST:
            counts[command] += 1
            yield _format_line(command, one, file)
        else:
            left += 1
    if left:
        yield f"::notice title=Holdfast::{_escape_data(f'{left} more: {format_report_path(run)}')}"
    # A run may fail without a remark on any line, for example by its score. The step must still show why.
    if run.score.exit_code and not counts["error"] and not counts["warning"]:
        reasons = "; ".join(run.score.reasons)
        text = _escape_data(f"{format_verdict(run.score)}: {to_one_line(reasons)}")
        yield f"::error file={_escape_property(file)},title=Holdfast::{text}"


def _get_command(one: LineRemark) -> str:
    return "warning" if one.outcome == "error" else _COMMANDS[one.level]


def _format_line(command: str, one: LineRemark, file: str) -> str:
    name = f"{one.rule} in {one.where}" if one.rule else one.where
    text = to_one_line(one.reason if one.outcome == "fail" else f"{one.outcome}: {one.reason}")
    again = f"\nagain: {to_one_line(one.again)}" if one.again else ""
    place = f"file={_escape_property(file)},line={max(1, one.line)},title={_escape_property(to_one_line(name))}"
    return f"::{command} {place}::{_escape_data(text + again)}"


def _escape_data(text: str) -> str:
    """Escape the text after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """Escape the value of a property, which ends at a comma or a colon."""
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


Level = Literal["error", "warning", "note"]
_LEVELS: dict[str, Level] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


class LineRemark(Struct, frozen=True):
    """A rule that failed in a scenario; an empty rule means the case as a whole."""

    rule: str
    where: str
    """The scenario, with its params if it has any."""
    outcome: Outcome
    level: Level
    reason: str
    code: str = ""
    line: int = 1
    column: int = 1
    again: str = ""
    """The command that reproduces it."""
    standards: tuple[StandardEntry, ...] = ()
    """The standards of its rule, its scenario's faults or its mutation."""
    other_cause: tuple[str, ...] = ()
    """Distinguishes the second and later causes of one cell; empty for the first."""


def get_level(rule: Invariant) -> Level:
    """Return the level for the rule's severity."""
    return "error" if rule.critical else _LEVELS[rule.severity]


def list_remarks(run: Run) -> Iterator[LineRemark]:
    """Yield a remark for each cell and case that failed, is an error or unproven, worst first. Those that do not
    decide the verdict are notes.
    """
    rules = {rule.id: rule for rule in run.invariants}
    failed = {cases.format_head(row.case) for row in run.cases if row.case.status == "fail"}
    decisive = Decisive(run, failed)
    for row in cases.list_troubled(run):
        if row.case.status != "pass":
            yield from (
                _add_standards(run, one, row.case.scenario, row.case) for one in _build_case_remarks(row, rules)
            )
    for matrix_row in sorted(list_unexplained(run), key=wording.build_sort_key):
        for n, part in enumerate(wording.split_by_cause(matrix_row)):
            remark = _build_cell_remark(part, rules, decisive)
            if n:
                remark = replace(remark, other_cause=(part.cell.code, *part.cell.key, part.cell.ending))
            yield _add_standards(run, remark, matrix_row.cell.scenario)


def _add_standards(run: Run, one: LineRemark, scenario: str, case: Case | None = None) -> LineRemark:
    entries = (
        *standards.list_for_rule(run, one.rule),
        *standards.list_for_scenario(run, scenario),
        *(standards.list_for_case(case) if case is not None else ()),
    )
    return replace(one, standards=tuple(dict.fromkeys(entries))) if entries else one


def _build_cell_remark(row: CellRow, rules: dict[str, Invariant], decisive: Decisive) -> LineRemark:
    cell, trial = row.cell, wording.find_telling(row)
    counts = cell.outcome == "fail" and decisive.is_decisive(cell)
    level = get_level(rules[cell.invariant]) if counts and cell.invariant in rules else "note"
    where, reason = wording.format_column(cell), wording.format_reason(row)
    line, column = _get_position(rules, cell.invariant)
    again = trial.again if trial else ""
    return LineRemark(cell.invariant, where, cell.outcome, level, reason, cell.code, line, column, again)


def _build_case_remarks(row: CaseRow, rules: dict[str, Invariant]) -> Iterator[LineRemark]:
    """Yield one remark for each rule that did not pass in the most telling trial; if there is none, one for the
    case.
    """
    case, one = row.case, cases.find_telling(row)
    outcome = cases.get_outcome(case)
    where, again = cases.format_head(case), one.again if one else ""
    failed = [v for v in cases.list_unpassed(one) if v.outcome == outcome] if one else []
    for verdict in failed:
        rule = verdict.invariant
        level = get_level(rules[rule]) if outcome == "fail" and rule in rules else "note"
        line, column = _get_position(rules, rule)
        yield LineRemark(rule, where, outcome, level, verdict.reason, verdict.code, line, column, again)
    if not failed:
        level = "error" if outcome == "fail" else "note"
        code = case.causes[0].code if case.causes else ""
        yield LineRemark("", where, outcome, level, case.reason, code, again=again)


def _get_position(rules: dict[str, Invariant], rule: str) -> tuple[int, int]:
    at = rules[rule].position if rule in rules else None
    return (at.line, at.column) if at else (1, 1)
