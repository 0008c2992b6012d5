"""JUnit XML for CI servers: one suite per scenario with a test case per rule, and one suite for the cases.

A suite's totals come before its cases, so the run is walked twice: to count, then to write.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import ClassVar
from xml.etree import ElementTree as ET

from holdfast.model.run import CaseRow, CellRow, Run
from holdfast.model.score import Cell
from holdfast.report import cases, wording
from holdfast.report.decisive import Decisive
from holdfast.report.facts import Facts, list_case_facts, list_cell_facts
from holdfast.report.safe import make_visible

_VACUOUS = "no trial met any fault of this scenario, so it proves nothing"
_KINDS = {"fail": "failures", "error": "errors", "unproven": "skipped", "n/a": "skipped", "idle": "skipped"}
ROOM = 4000
"""Characters of an answer."""
_IDLE = {"fail": "failed, but decides nothing", "error": "an error, but decides nothing"}


class Junit:
    """`report.xml`: fail is a failure, error an error; cells that decide nothing, unproven and n/a are skipped."""

    suffix: ClassVar[str] = ".xml"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.xml": _render(run)}


class Suite:
    """The totals of a suite, and the duration of each of its cases."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        self.times = array("d")

    def count(self, outcome: str, latency_ms: float) -> None:
        """Count the next case."""
        self.times.append(float(f"{latency_ms / 1000:.3f}"))
        self.totals["tests"] += 1
        if outcome in _KINDS:
            self.totals[_KINDS[outcome]] += 1

    @property
    def seconds(self) -> float:
        return float(f"{sum(self.times):.3f}")


def _render(run: Run) -> Iterator[bytes]:
    failed: set[str] = set()
    judged = [_count_cases(run, failed)] if run.by_cases else []
    decisive = Decisive(run, failed)
    # Cells of a stored run come scenario by scenario and can be streamed. A run in another order is searched once for
    # each suite, which is slower, but needs no copy of its cells.
    suites, sorted_ = _count_cells(run, decisive)
    verdict = _build_verdict_suite(run, [*judged, *suites.values()])
    root = _build_head("testsuites", run.name or run.spec_path, [*judged, *suites.values(), *verdict])
    yield b"<?xml version='1.0' encoding='utf-8'?>\n"
    if not judged and not suites and not verdict:
        yield ET.tostring(root, "utf-8") + b"\n"
        return
    yield _render_start_tag(root)
    rules, places = cases.RuleFacts(run), wording.Places(run)
    for suite in judged:
        timed = zip(run.cases, suite.times, strict=True)
        yield from _render_suite(run, suite, (_build_case(row, rules, seconds, decisive) for row, seconds in timed))
    for suite, rows in _group_by_scenario(run, suites, sorted_):
        timed_cells = zip(rows, suite.times, strict=False)  # one more if the scenario is vacuous
        made = (_build_cell(run, row, places, seconds, decisive) for row, seconds in timed_cells)
        yield from _render_suite(run, suite, made)
    for suite in verdict:
        case = ET.Element("testcase", classname="verdict", name="verdict", time="0.000")
        ET.SubElement(case, "error", message=_escape("; ".join(run.score.reasons)), type=f"exit {run.score.exit_code}")
        yield from _render_suite(run, suite, [case])
    yield b"\n</testsuites>\n"


def _build_verdict_suite(run: Run, suites: Iterable[Suite]) -> list[Suite]:
    """Return a suite with only the verdict, if a run failed and none of its cases shows it."""
    if run.score.exit_code == 0 or any(suite.totals["failures"] or suite.totals["errors"] for suite in suites):
        return []
    suite = Suite("verdict")
    suite.count("error", 0.0)
    return [suite]


def _count_cases(run: Run, failed: set[str]) -> Suite:
    """Return the cases as their own suite, named after the file; adds the heads of failed cases to `failed`."""
    suite = Suite(f"{run.name or run.spec_path}: cases")
    passed = run.score.exit_code == 0
    for row in run.cases:
        case = row.case
        if case.status == "fail":
            failed.add(wording.format_head(case.scenario, case.params))
        undecided = case.unproven_only or (passed and case.status == "error")
        suite.count(
            "unproven" if undecided else case.status,
            sum(turn.latency_ms for one in row.replicas for turn in one.seen.turns),
        )
    return suite


def _count_cells(run: Run, decisive: Decisive) -> tuple[dict[str, Suite], bool]:
    """Return the suite of every scenario, and whether its cells are contiguous, as in a stored run."""
    suites: dict[str, Suite] = {}
    last, sorted_ = None, True
    for row in run.cells:
        name = row.cell.scenario
        sorted_ = sorted_ and (name == last or name not in suites)
        last = name
        outcome = _get_outcome(row.cell, decisive)
        suites.setdefault(name, Suite(name)).count(outcome, sum(trial.latency_ms for trial in row.trials))
    for name in run.score.vacuous:
        if name in suites:
            suites[name].count("unproven" if decisive.held else "error", 0.0)
    return suites, sorted_


def _get_outcome(cell: Cell, decisive: Decisive) -> str:
    """`idle` for a cell that failed, or is an error, but decides nothing."""
    return "idle" if cell.outcome in ("fail", "error") and not decisive.is_decisive(cell) else cell.outcome


def _group_by_scenario(
    run: Run, suites: Mapping[str, Suite], sorted_: bool
) -> Iterator[tuple[Suite, Iterable[CellRow]]]:
    if sorted_:
        yield from ((suites[name], rows) for name, rows in groupby(run.cells, lambda row: row.cell.scenario))
        return
    for suite in suites.values():
        yield suite, [row for row in run.cells if row.cell.scenario == suite.name]


def _render_suite(run: Run, suite: Suite, made: Iterable[ET.Element]) -> Iterator[bytes]:
    head = _build_head("testsuite", suite.name, [suite], started=run.started)
    yield b"\n  " + _render_start_tag(head)
    yield _render_element(_build_properties(run))
    yield from map(_render_element, made)
    if suite.name in run.score.vacuous:
        case = ET.Element("testcase", classname=_escape(suite.name), name="faults are met", time="0.000")
        if run.score.exit_code == 0:
            ET.SubElement(case, "skipped", message=_VACUOUS)
        else:
            ET.SubElement(case, "error", message=_VACUOUS, type="vacuous")
        yield _render_element(case)
    yield b"\n  </testsuite>"


def _build_head(tag: str, name: str, suites: list[Suite], started: str = "") -> ET.Element:
    head = ET.Element(tag, name=_escape(name))
    if started:
        head.set("timestamp", _escape(started))
    for key in ("tests", "failures", "errors", "skipped"):
        head.set(key, str(sum(suite.totals[key] for suite in suites)))
    head.set("time", f"{sum(suite.seconds for suite in suites):.3f}")
    return head


def _render_start_tag(element: ET.Element) -> bytes:
    """Return the start tag alone."""
    whole: bytes = ET.tostring(element, "utf-8", short_empty_elements=False)
    return whole.removesuffix(f"</{element.tag}>".encode())


def _render_element(element: ET.Element) -> bytes:
    """Return an element of a suite, on its own lines."""
    ET.indent(element, level=2)
    whole: bytes = ET.tostring(element, "utf-8")
    return b"\n    " + whole


def _build_case(row: CaseRow, rules: cases.RuleFacts, seconds: float, decisive: Decisive) -> ET.Element:
    case = row.case
    made = ET.Element("testcase", classname="cases", name=_escape(cases.format_head(case)), time=f"{seconds:.3f}")
    message = _escape(case.reason)
    if case.unproven_only:
        ET.SubElement(made, "skipped", message=f"unproven: {message}")
    elif case.status == "error" and decisive.held:
        ET.SubElement(made, "skipped", message=f"{_IDLE['error']}: {message}")
    elif case.status != "pass":
        kind = "failure" if case.status == "fail" else "error"
        failed = (one for one in row.replicas if one.replica.status != "pass")
        text = "\n".join(line for one in failed for line in _format_facts(list_case_facts(case, one, rules, room=ROOM)))
        ET.SubElement(
            made, kind, message=message, type=case.causes[0].code if case.causes else case.status
        ).text = _escape(text)
    body = [f"composite: {cases.format_composite(case.composite)}"]
    ET.SubElement(made, "system-out").text = ", ".join([*body, *(["flaky"] if case.flaky else [])])
    return made


def _build_properties(run: Run) -> ET.Element:
    known = {
        "seed": str(run.seed),
        "score": wording.format_number(run.score.value),
        "verdict": wording.format_verdict(run.score),
        "run": run.id,
        "version": run.version,
    }
    attacks = run.score.attacks
    if attacks is not None:
        known["attacks.attacked"], known["attacks.succeeded"] = str(attacks.attacked), str(attacks.succeeded)
        known["attacks.utility"] = wording.format_number(attacks.utility.rate)
    properties = ET.Element("properties")
    pairs = [*((f"warning.{one.code}", one.text) for one in run.warnings), *(("note", note.text) for note in run.notes)]
    for name, value in (*known.items(), *pairs):
        ET.SubElement(properties, "property", name=name, value=_escape(value))
    return properties


def _build_cell(run: Run, row: CellRow, places: wording.Places, seconds: float, decisive: Decisive) -> ET.Element:
    cell = row.cell
    outcome = _get_outcome(cell, decisive)
    name = wording.format_head(cell.invariant, cell.params)
    case = ET.Element("testcase", classname=_escape(cell.scenario), name=_escape(name), time=f"{seconds:.3f}")
    if outcome == "n/a":
        ET.SubElement(case, "skipped", message="not applicable: its `when` is not met here")
    elif outcome == "unproven":
        step = wording.format_next_step(run, row)
        message = f"unproven: {_format_message(row)}" + (f". Next: {_escape(step)}" if step else "")
        ET.SubElement(case, "skipped", message=message)
    elif outcome == "idle":
        ET.SubElement(case, "skipped", message=f"{_IDLE[cell.outcome]}: {_format_message(row)}")
        ET.SubElement(case, "system-out").text = _format_body(run, row, places)
    elif outcome != "pass":
        kind = "failure" if outcome == "fail" else "error"
        ET.SubElement(case, kind, message=_format_message(row), type=cell.code).text = _format_body(run, row, places)
    marks = wording.list_marks(cell)
    if marks and cell.outcome not in ("fail", "error"):  # their body contains it
        ET.SubElement(case, "system-out").text = ", ".join(marks)
    return case


def _format_message(row: CellRow) -> str:
    """Return the first cause of the cell, and the number of others; the body describes each of them."""
    others = len(row.cell.causes) - 1
    return _escape(wording.format_reason(row)) + (
        f" (and {wording.format_count(others, 'other cause')})" if others > 0 else ""
    )


def _format_body(run: Run, row: CellRow, places: wording.Places) -> str:
    lines = [f"at {places.format_place(row.cell.invariant)} ({row.cell.severity})"]
    marks = wording.list_marks(row.cell)
    if marks:
        lines.append(", ".join(marks))
    for part in wording.split_by_cause(row):
        lines += _format_facts(list_cell_facts(run, part, wording.find_telling(part), room=ROOM))
    return _escape("\n".join(lines))


def _format_facts(facts: Facts) -> Iterator[str]:
    return (f"{label}: {text}" if label else text for label, text in facts)


def _escape(text: str) -> str:
    """Return the text with forbidden XML characters and invisible characters spelled out."""
    return make_visible(text, keep="\n\t")
