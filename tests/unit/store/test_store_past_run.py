"""What got worse since the last good run, and at which commit."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from holdfast.model.verdict import Outcome
from holdfast.runner.past.history import find_regressions
from holdfast.store.history import History
from holdfast.store.past_run import CASES, PastCell, PastRun

SPEC = "/project/holdfast.yaml"


def run(id: str, *, good: bool = False, spec: str = SPEC, part: str = "contract", **cells: Outcome) -> PastRun:
    made = tuple(PastCell(rule, "down", outcome) for rule, outcome in cells.items())
    code = 0 if good else 1
    known = PastRun(id, part, spec=spec, commit=f"c{id}", complete=True, whole=True, passed=good, exit_code=code)
    return replace(known, cells=made)


def compare(*runs: PastRun) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the last good run before the last of these, and the rules that fail since, each with run and commit."""

    def read_runs(cells_of: Iterable[str] = ()) -> list[PastRun]:
        return [one if one.id in cells_of else replace(one, cells=()) for one in reversed(runs)]

    good, worse = find_regressions(cast(History, SimpleNamespace(read_runs=read_runs)), runs[-1].id)
    return good, [(one.rule, one.failed_in, one.failed_commit) for one in worse]


@pytest.mark.parametrize(
    ("good", "runs"),
    [
        ("0001", [run("0001", good=True), run("0002"), run("0003")]),
        ("0002", [run("0001", good=True), run("0002", good=True), run("0003")]),
        ("", [run("0001", spec="/other", good=True), run("0002", part="scenario", good=True), run("0003")]),
        ("", [replace(run("0001", good=True), whole=False), replace(run("0002", good=True), complete=False), run("3")]),
        ("10000/contract", [run("0009/contract", good=True), run("10000/contract", good=True), run("10001/contract")]),
    ],
)
def test_the_last_good_run_is_complete_and_of_the_same_file_and_part(good: str, runs: list[PastRun]) -> None:
    assert compare(*runs)[0] == good


def test_only_what_passed_and_now_fails_is_worse() -> None:
    before = run("0001", good=True, cites="pass", polite="fail", fast="pass", calm="pass", old="unproven")
    after = run("0002", cites="fail", polite="fail", fast="error", calm="unproven", old="fail", new="fail")
    assert compare(before, after) == ("0001", [("cites", "0002", "c0002")])
    assert compare(before, replace(before, id="0003")) == ("0001", [])


def test_the_commit_is_that_of_the_first_run_in_which_it_failed() -> None:
    between: list[PastRun] = [
        run("0002", cites="fail"),
        run("0003", cites="pass"),
        run("0004", cites="fail"),
        run("0005", cites="error"),
        run("0006", spec="/other", cites="pass"),
    ]
    found: Any = compare(run("0001", good=True, cites="pass"), *between, run("0007", cites="fail"))
    assert found == ("0001", [("cites", "0004", "c0004")])


@pytest.mark.parametrize(("cites", "worse"), [("fail", "cites"), ("pass", CASES)])
def test_cases_are_named_where_no_rule_is(cites: Outcome, worse: str) -> None:
    before = run("0001", good=True, **{"cites": "pass", CASES: "pass"})
    assert compare(before, run("0002", **{"cites": cites, CASES: "fail"}))[1] == [(worse, "0002", "c0002")]
