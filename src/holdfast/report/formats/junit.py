"""JUnit XML for CI servers: one suite per scenario with a test case per rule, and one suite for the cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from tempfile import SpooledTemporaryFile
from typing import IO, ClassVar, NamedTuple
from xml.etree import ElementTree as ET

from holdfast.model.run import CaseRow, CellRow, Run
from holdfast.model.score import Cell
from holdfast.report import cases, wording
from holdfast.report.decisive import Decisive
from holdfast.report.facts import Facts, list_case_facts, list_cell_facts
from holdfast.report.safe import make_visible

_VACUOUS = "no trial met any fault of this scenario, so it proves nothing"
_TOTALS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""The attribute of a suite that counts the test cases with this element."""
IN_MEMORY = 16_000_000
"""Bytes of test cases that stay in memory."""
ROOM = 4000
"""Characters of an answer."""
_IDLE = {"fail": "failed, but does not affect the verdict", "error": "an error, but does not affect the verdict"}


class Junit:
    """`report.xml`: fail is a failure, error an error; cells that decide nothing, unproven and n/a are skipped."""

    suffix: ClassVar[str] = ".xml"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.xml": _render(run)}


class Suite(NamedTuple):
    """A suite whose test cases are written."""

    name: str
    totals: Mapping[str, int]
    seconds: float
    size: int
    """Bytes of its test cases."""
    started: str


def _render(run: Run) -> Iterator[bytes]:
    yield from render_suites(run.name or run.spec_path, [("", run)])


def render_suites(title: str, runs: Iterable[tuple[str, Run]], verdict: ET.Element | None = None) -> Iterator[bytes]:
    """Yield the suites of all runs, each named after its part, and one for the overall verdict."""
    # The totals of a suite come before its test cases, so these wait in a file until all of them are counted.
    with SpooledTemporaryFile(IN_MEMORY) as body:
        suites = [suite for part, run in runs for suite in _write_run(run, f"{part}: " if part else "", body)]
        if verdict is not None:
            suites.append(_write_suite(None, "overall", [verdict], body))
        root = _build_head("testsuites", title, suites)
        yield b"<?xml version='1.0' encoding='utf-8'?>\n"
        if not suites:
            yield ET.tostring(root, "utf-8") + b"\n"
            return
        yield _render_start_tag(root)
        body.seek(0)
        for suite in suites:
            yield b"\n  " + _render_start_tag(_build_head("testsuite", suite.name, [suite], started=suite.started))
            yield body.read(suite.size)
            yield b"\n  </testsuite>"
        yield b"\n</testsuites>\n"


def _write_run(run: Run, prefix: str, body: IO[bytes]) -> list[Suite]:
    failed = [row.case for row in run.cases if run.by_cases and row.case.status == "fail"]
    decisive = Decisive(run, {wording.format_head(case.scenario, case.params) for case in failed})
    suites = [_write_suite(run, prefix + name, elements, body) for name, elements in _iter_suites(run, decisive)]
    if run.score.exit_code and not any(suite.totals["failures"] or suite.totals["errors"] for suite in suites):
        suites.append(_write_suite(run, f"{prefix}verdict", [_build_verdict(run)], body))
    return suites


def _iter_suites(run: Run, decisive: Decisive) -> Iterator[tuple[str, Iterable[ET.Element]]]:
    """Yield the name and the test cases of each suite: the cases, named after the file, then every scenario."""
    if run.by_cases:
        rules = cases.RuleFacts(run)
        yield f"{run.name or run.spec_path}: cases", (_build_case(row, rules, decisive) for row in run.cases)
    places = wording.Places(run)
    for name, rows in groupby(run.cells, lambda row: row.cell.scenario):
        made = (_build_cell(run, row, places, decisive) for row in rows)
        yield name, chain(made, [_build_vacuous(run, name)]) if name in run.score.vacuous else made


def _write_suite(run: Run | None, name: str, elements: Iterable[ET.Element], body: IO[bytes]) -> Suite:
    """Write the properties of its run and the test cases of a suite, and count them."""
    totals = dict.fromkeys(("tests", *_TOTALS.values()), 0)
    seconds, start = 0.0, body.tell()
    if run is not None:
        body.write(_render_element(_build_properties(run)))
    for element in elements:
        totals["tests"] += 1
        for child in element:
            if child.tag in _TOTALS:
                totals[_TOTALS[child.tag]] += 1
        seconds += float(element.get("time", 0))
        body.write(_render_element(element))
    return Suite(name, totals, seconds, body.tell() - start, run.started if run is not None else "")


def _build_vacuous(run: Run, scenario: str) -> ET.Element:
    case = ET.Element("testcase", classname=_escape(scenario), name="faults are met", time="0.000")
    if run.score.exit_code == 0:
        ET.SubElement(case, "skipped", message=_VACUOUS)
    else:
        ET.SubElement(case, "error", message=_VACUOUS, type="vacuous")
    return case


def _build_verdict(run: Run) -> ET.Element:
    """Return a test case for the verdict: the run failed, and none of its test cases shows it."""
    case = ET.Element("testcase", classname="verdict", name="verdict", time="0.000")
    ET.SubElement(case, "error", message=_escape("; ".join(run.score.reasons)), type=f"exit {run.score.exit_code}")
    return case


def _get_outcome(cell: Cell, decisive: Decisive) -> str:
    """`idle` for a cell that failed, or is an error, but does not affect the verdict."""
    return "idle" if cell.outcome in ("fail", "error") and not decisive.is_decisive(cell) else cell.outcome


def _build_head(tag: str, name: str, suites: list[Suite], started: str = "") -> ET.Element:
    head = ET.Element(tag, name=_escape(name))
    if started:
        head.set("timestamp", _escape(started))
    for key in ("tests", *_TOTALS.values()):
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


def _build_case(row: CaseRow, rules: cases.RuleFacts, decisive: Decisive) -> ET.Element:
    case = row.case
    seconds = sum(turn.latency_ms for one in row.replicas for turn in one.seen.turns) / 1000
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


def _build_cell(run: Run, row: CellRow, places: wording.Places, decisive: Decisive) -> ET.Element:
    cell = row.cell
    seconds = sum(trial.latency_ms for trial in row.trials) / 1000
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
