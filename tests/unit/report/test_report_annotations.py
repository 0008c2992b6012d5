"""Workflow commands: one line each, escaped, no more than GitHub shows."""

from __future__ import annotations

import re

from msgspec.structs import replace
from report_cases_sample import alone
from report_sample import HOSTILE, cell, sample, trial

from holdfast.model.run import Run
from holdfast.report.formats.line_remarks import MOST, format_commands

LINE = re.compile(r"::(error|warning|notice) (?:file=([^,:\s]+),)?(?:line=(\d+),)?title=([^,:]+)::([^\r\n]*)")
"""What the runner reads."""


def read(run: Run, file: str = "finance.yaml") -> list[tuple[str, ...]]:
    run = replace(run, spec_path=file)
    found = [LINE.fullmatch(line) for line in format_commands(run)]
    assert all(found), list(format_commands(run))
    return [match.groups() for match in found if match]


def test_a_failed_cell_is_an_error_at_its_rules_line() -> None:
    first = next(one for one in read(sample()) if "llm-degraded" in one[3])
    assert first[:4] == ("error", "finance.yaml", "12", "always-cite-source in llm-degraded")
    assert "%0Aagain: holdfast contract run --trial" in first[4]


def test_what_is_unproven_is_a_notice_and_an_error_of_ours_a_warning() -> None:
    kinds = {said.split(":")[0]: kind for kind, *_, said in read(sample()) if said.startswith(("error", "unproven"))}
    assert kinds == {"error": "warning", "unproven": "notice"}


def test_cases_are_reported_too() -> None:
    assert any(kind == "error" for kind, *_ in read(alone()))


def test_text_cannot_leave_its_line_or_its_property() -> None:
    run = sample()
    name = "a,b:c%\r\n::error::x"
    rules = tuple(replace(rule, id=name) if rule.id == "always-cite-source" else rule for rule in run.invariants)
    row = cell("always-cite-source", "llm-degraded", "fail", trial("d" * 12, "fail", reason=HOSTILE + "\n::stop::\r"))
    hostile = replace(run, invariants=rules, cells=[replace(row, cell=replace(row.cell, invariant=name))])
    (only,) = read(hostile, "x,y:z%.yaml")
    assert only[1] == "x%2Cy%3Az%25.yaml"
    assert only[3].startswith("a%2Cb%3Ac%25")


def test_no_more_than_are_shown_are_given_and_the_rest_is_counted() -> None:
    row = cell("always-cite-source", "llm-degraded", "fail", trial("d" * 12, "fail"))
    rows = [replace(row, cell=replace(row.cell, scenario=f"s{n}")) for n in range(MOST + 7)]
    made = read(replace(sample(), cells=rows))
    assert [kind for kind, *_ in made] == ["error"] * MOST + ["notice"]
    assert made[-1][4].startswith("7 more: ")


def test_a_verdict_that_no_cell_explains_is_an_error() -> None:
    run = sample()
    (only,) = read(replace(run, cells=[], score=replace(run.score, exit_code=5, reasons=("no proof",))))
    assert (only[0], only[4]) == ("error", "UNPROVEN: no proof")


def test_a_spec_in_a_repository_is_named_from_its_top() -> None:
    assert {one[1] for one in read(replace(sample(), source="agents/finance.yaml")) if one[1]} == {
        "agents/finance.yaml"
    }
