"""SARIF as its 2.1.0 schema has it, pointing at the spec's lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from msgspec.structs import replace
from report_cases_sample import alone, with_matrix
from report_sample import HOSTILE, cell, sample, trial, whole

from holdfast.model.codes import RunNote
from holdfast.model.run import Overall, Run
from holdfast.report.formats.line_remarks import MOST, format_commands
from holdfast.report.formats.sarif import Sarif, build_document, build_whole_document

LOG = json.loads(Path(__file__).with_name("sarif_schema.json").read_text())
"""The part of the official schema that a log of ours uses: what it requires, its enums, nothing it does not know."""


def log(run: Run) -> Any:
    made = json.loads(whole(Sarif(), run))
    jsonschema_rs.validator_for(LOG).validate(made)
    return made["runs"][0]


@pytest.mark.parametrize("make", [sample, alone, with_matrix])
def test_a_log_fits_the_schema_and_its_rules_are_where_it_says(make: Any) -> None:
    made = log(make())
    rules = [rule["id"] for rule in made["tool"]["driver"]["rules"]]
    assert made["results"]
    for result in made["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]


def test_errors_and_what_is_unproven_are_notifications_and_no_results() -> None:
    made = log(sample())
    told = made["invocations"][0]["toolExecutionNotifications"]
    by_word = {one["message"]["text"].split(":")[0]: one["level"] for one in told if "associatedRule" in one}
    assert by_word == {"error": "error", "unproven": "note"}
    assert not any(one["message"]["text"].startswith(("error:", "unproven:")) for one in made["results"])


def test_a_run_that_our_side_broke_was_no_successful_execution() -> None:
    run = sample()
    broken = replace(run, score=replace(run.score, exit_code=3))
    assert log(run)["invocations"][0]["executionSuccessful"] is True
    assert log(broken)["invocations"][0]["executionSuccessful"] is False


def test_what_is_tolerated_is_a_note() -> None:
    run = sample()
    held = replace(run, score=replace(run.score, exit_code=0, passed=True))
    assert {one["level"] for one in log(held)["results"]} == {"note"}


def test_fingerprints_stay_the_same_in_another_run_and_differ_by_cell() -> None:
    first, second = log(sample()), log(replace(sample(), id="0099", seed=8, started="2026-01-01T00:00:00+00:00"))
    marks = [[one["partialFingerprints"]["holdfastCell/v1"] for one in made["results"]] for made in (first, second)]
    assert marks[0] == marks[1]
    assert len(set(marks[0])) == len(marks[0])


def test_a_hostile_text_is_shown_and_is_not_a_link() -> None:
    run = sample()
    rules = tuple(replace(rule, description=HOSTILE) for rule in run.invariants)
    made = whole(
        Sarif(), replace(run, invariants=rules, notes=(RunNote("selection", HOSTILE),), spec_path="a b/<x>.yaml")
    ).decode()
    jsonschema_rs.validator_for(LOG).validate(json.loads(made))
    assert "](" not in made
    assert "\x1b" not in made
    assert '"uri": "a%20b/%3Cx%3E.yaml"' in made


def test_a_spec_by_its_absolute_path_is_a_file_uri() -> None:
    made = log(replace(sample(), spec_path="/a b/finance.yaml"))
    place = made["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///a%20b/finance.yaml"


def test_a_spec_in_a_repository_is_named_from_its_top() -> None:
    made = log(replace(sample(), source="agents/finance.yaml", spec_path="../finance.yaml"))
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in made["results"]}
    assert uris == {"agents/finance.yaml"}


@pytest.mark.parametrize(
    ("code", "results", "told"), [(0, 0, []), (1, 1, []), (3, 0, ["error"]), (5, 0, ["note"]), (2, 0, ["error"])]
)
def test_a_run_of_several_parts_has_an_entry_of_the_overall_verdict(code: int, results: int, told: list[str]) -> None:
    why = ("mutation: 1 of 2 mutations failed", "overall 69.09 is below the minimum 90")
    found = Overall("0007", 69.09, code == 0, code, (), why, spec_path="a b.yaml", started="2026-01-02T03:04:05+00:00")
    log = build_whole_document(found, [sample()])
    jsonschema_rs.validate(LOG, log)
    first, last = log["runs"]
    assert first == build_document(sample())["runs"][0]
    assert last["automationDetails"]["id"] == "holdfast/ci/a%20b.yaml/"
    assert last["properties"] == {"run": "0007", "seed": 0, "score": 69.09, "passed": code == 0}
    (invocation,) = last["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (code, code in (0, 1, 5))
    assert [one["level"] for one in invocation["toolExecutionNotifications"]] == told
    assert len(last["results"]) == results
    for one in last["results"]:
        assert (one["ruleId"], one["level"]) == ("overall", "error")
        assert one["message"]["text"] == f"{why[0]}; {why[1]}"
        assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.yaml"


# Workflow commands: one line each, escaped, no more than GitHub shows.


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


def test_an_annotation_names_a_spec_from_the_top_of_its_repository() -> None:
    assert {one[1] for one in read(replace(sample(), source="agents/finance.yaml")) if one[1]} == {
        "agents/finance.yaml"
    }
