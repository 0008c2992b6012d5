"""JUnit agrees with the verdict: what decides nothing is no failure there."""

from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from report_cases_sample import alone, with_matrix
from report_sample import cell, sample, trial, whole

from holdfast.model.run import Run
from holdfast.report.decisive import Decisive
from holdfast.report.formats.junit import Junit

FAILED = cell("max-latency", "search-tool-down", "fail", trial("aaaaaaaaaaaa"), fails=1)
MUST = cell("always-cite-source", "search-tool-down", "fail", trial("bbbbbbbbbbbb"), fails=1, critical=True)
BROKE = cell("never-fabricate", "search-tool-down", "error", trial("cccccccccccc"))


def totals(run: Run) -> tuple[str | None, ...]:
    root = ET.fromstring(whole(Junit(), run))
    kinds = [child.tag for case in root.iter("testcase") for child in case]
    found = tuple(root.get(name) for name in ("failures", "errors", "skipped"))
    assert found == tuple(str(kinds.count(tag)) for tag in ("failure", "error", "skipped"))
    return found


def verdict(run: Run, code: int, **more: object) -> Run:
    score = replace(run.score, exit_code=code, passed=code == 0, vacuous=(), min_score=None)
    return replace(run, score=replace(score, **more), contract=run.contract and replace(score, **more))


@pytest.mark.parametrize("made", [sample, with_matrix])
def test_nothing_has_failed_in_a_run_that_held(made) -> None:
    run = made()
    run = replace(run, score=replace(run.score, exit_code=0), cases=[r for r in run.cases if r.case.status != "fail"])
    failures, errors, _ = totals(run)
    assert (failures, errors) == ("0", "0")


def test_a_cell_within_the_minimum_is_not_a_failure_and_still_tells_why() -> None:
    slow = cell("max-latency", "search-tool-down", "fail", trial("aaaaaaaaaaaa"), fails=1, reason="took 9 s")
    run = replace(sample(), cells=[slow, MUST, BROKE])
    run = verdict(run, 1, min_score=10.0, tolerated=("max-latency in search-tool-down",))
    assert totals(run) == ("1", "1", "1")
    skipped = ET.fromstring(whole(Junit(), run)).find("testsuite/testcase[@name='max-latency']/skipped")
    assert skipped is not None
    assert "took 9 s" in (skipped.get("message") or "")


def test_without_a_minimum_every_failed_cell_of_a_contract_is_a_failure() -> None:
    assert totals(verdict(replace(sample(), cells=[FAILED, MUST]), 1)) == ("2", "0", "0")


@pytest.mark.parametrize(
    ("more", "failed", "expected"),
    [
        ({}, (), [False, True]),
        ({}, ("search-tool-down",), [True, True]),
        ({"min_score": 90.0}, (), [True, True]),
        ({"min_score": 10.0, "tolerated": ("max-latency in search-tool-down",)}, (), [False, True]),
    ],
    ids=["plain", "its case failed", "below the minimum", "within the minimum"],
)
def test_next_to_cases_a_cell_decides_if_it_is_critical_or_its_case_failed(more, failed, expected) -> None:
    decisive = Decisive(verdict(with_matrix(), 1, **more), failed)
    assert [decisive.is_decisive(row.cell) for row in (FAILED, MUST)] == expected


def test_without_a_matrix_the_cases_decide_alone() -> None:
    decisive = Decisive(verdict(alone(), 1), ())
    assert not decisive.is_decisive(MUST.cell)
    assert Decisive(verdict(alone(), 1), ("search-tool-down",)).is_decisive(FAILED.cell)


@pytest.mark.parametrize(("code", "errors"), [(0, "0"), (5, "1"), (3, "1")])
def test_a_run_that_did_not_hold_never_looks_green(code: int, errors: str) -> None:
    run = replace(sample(), cells=[cell("always-cite-source", "no-chaos", "pass", trial("aaaaaaaaaaaa"))])
    assert totals(verdict(run, code, reasons=("nothing proven",)))[:2] == ("0", errors)
