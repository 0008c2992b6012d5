"""JUnit XML for CI servers: a suite a scenario, a test case a rule; and a suite of the cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from holdfast.model.run import CaseRow, CellRow, ReplicaRow, Run
from holdfast.report import cases, wording
from holdfast.report.failures import excerpt
from holdfast.report.safe import visible

_VACUOUS = "no trial met any fault of this scenario, so it proves nothing"


class Junit:
    """`report.xml`: fail is a failure, error an error, unproven and n/a are skipped."""

    def render(self, run: Run) -> Mapping[str, bytes]:
        root = ET.Element("testsuites", name=_legal(run.name or run.spec_path))
        suites: dict[str, list[CellRow]] = {}
        if run.part == "scenario":
            root.append(_cases(run))
        for row in run.cells:
            suites.setdefault(row.cell.scenario, []).append(row)
        places = wording.Places(run)
        for scenario in list(suites):  # taken out one by one: a row keeps the trials it has read
            root.append(_suite(run, scenario, suites.pop(scenario), places))
        _totals(root, list(root.iter("testcase")), sum(float(s.get("time", 0)) for s in root))
        ET.indent(root)
        return {"report.xml": ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"}


def _cases(run: Run) -> ET.Element:
    """The cases as a suite of their own, named by the file."""
    suite = ET.Element("testsuite", name=_legal(f"{run.name or run.spec_path}: cases"))
    if run.started:
        suite.set("timestamp", _legal(run.started))
    _properties(suite, run)
    rules = cases.RuleFacts(run)
    suite.extend(_judged(row, rules) for row in run.cases)
    found = suite.findall("testcase")
    _totals(suite, found, sum(float(case.get("time", 0)) for case in found))
    return suite


def _judged(row: CaseRow, rules: cases.RuleFacts) -> ET.Element:
    case = row.case
    replicas = list(row.replicas)
    seconds = sum(turn.latency_ms for one in replicas for turn in one.seen.turns) / 1000
    made = ET.Element("testcase", classname="cases", name=_legal(cases.head(case)), time=f"{seconds:.3f}")
    message = _legal(case.reason)
    if case.unproven_only:
        ET.SubElement(made, "skipped", message=f"unproven: {message}")
    elif case.status != "pass":
        kind = "failure" if case.status == "fail" else "error"
        text = "\n".join(line for one in replicas if one.replica.status != "pass" for line in _told(one, rules))
        ET.SubElement(made, kind, message=message, type=case.status).text = _legal(text)
    said = [f"composite: {cases.composite(case.composite)}"]
    ET.SubElement(made, "system-out").text = ", ".join([*said, *(["flaky"] if case.flaky else [])])
    return made


def _told(one: ReplicaRow, rules: cases.RuleFacts) -> Iterator[str]:
    yield f"asked: {one.prompt}"
    yield f"answered: {cases.answered(one, 4000)}"
    yield from (f"forbidden: {text}" for text in cases.violations(one))
    for verdict in cases.unpassed(one):
        yield f"because: {rules.reason(verdict)} (at {rules.place(verdict.invariant)})"
    yield from (f"met: {wording.fault(met)}" for met in one.seen.ledger)
    yield f"again: {one.again}"


def _suite(run: Run, scenario: str, rows: Sequence[CellRow], places: wording.Places) -> ET.Element:
    suite = ET.Element("testsuite", name=_legal(scenario))
    if run.started:
        suite.set("timestamp", _legal(run.started))
    _properties(suite, run)
    suite.extend(_case(run, row, places) for row in rows)
    if scenario in run.score.vacuous:
        case = ET.SubElement(suite, "testcase", classname=_legal(scenario), name="faults are met", time="0.000")
        ET.SubElement(case, "error", message=_VACUOUS, type="vacuous")
    cases = suite.findall("testcase")
    _totals(suite, cases, sum(float(case.get("time", 0)) for case in cases))
    return suite


def _properties(suite: ET.Element, run: Run) -> None:
    known = {
        "seed": str(run.seed),
        "score": wording.number(run.score.value),
        "verdict": wording.verdict(run.score),
        "run": run.id,
        "version": run.version,
    }
    attacks = run.score.attacks
    if attacks is not None:
        known["attacks.attacked"], known["attacks.succeeded"] = str(attacks.attacked), str(attacks.succeeded)
        known["attacks.utility"] = wording.number(attacks.utility.rate)
    properties = ET.SubElement(suite, "properties")
    said = [*(("warning", text) for text in run.warnings), *(("note", text) for text in run.notes)]
    for name, value in (*known.items(), *said):
        ET.SubElement(properties, "property", name=name, value=_legal(value))


def _case(run: Run, row: CellRow, places: wording.Places) -> ET.Element:
    cell = row.cell
    name = wording.head(cell.invariant, cell.params)
    seconds = sum(trial.latency_ms for trial in row.trials) / 1000
    case = ET.Element("testcase", classname=_legal(cell.scenario), name=_legal(name), time=f"{seconds:.3f}")
    message = _legal(wording.why(row))
    if cell.outcome == "fail":
        ET.SubElement(case, "failure", message=message, type=cell.severity).text = _body(row, places)
    elif cell.outcome == "error":
        ET.SubElement(case, "error", message=message, type="error").text = _body(row, places)
    elif cell.outcome == "unproven":
        ET.SubElement(case, "skipped", message=f"unproven: {message}. Next: {_legal(wording.next_step(run, row))}")
    elif cell.outcome == "n/a":
        ET.SubElement(case, "skipped", message="not applicable: its `when` is not met here")
    marks = wording.marks(cell)
    if marks and cell.outcome not in ("fail", "error"):  # those say it in their body
        ET.SubElement(case, "system-out").text = ", ".join(marks)
    return case


def _body(row: CellRow, places: wording.Places) -> str:
    lines = [f"at {places.of(row.cell.invariant)}"]
    marks = wording.marks(row.cell)
    if marks:
        lines.append(", ".join(marks))
    trial = wording.telling(row)
    if trial is not None:
        lines += [f"asked: {trial.prompt}", f"answered: {excerpt(trial, 4000)}", f"because: {trial.reason}"]
        lines += [f"met: {wording.fault(met)}" for met in trial.faults]
        lines.append(f"again: {trial.again}")
    return _legal("\n".join(lines))


def _totals(element: ET.Element, cases: Sequence[ET.Element], seconds: float) -> None:
    element.set("tests", str(len(cases)))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(plural, str(sum(case.find(tag) is not None for case in cases)))
    element.set("time", f"{seconds:.3f}")


def _legal(text: str) -> str:
    """Characters that XML forbids, and those that hide, are spelled out."""
    return visible(text, keep="\n\t")
