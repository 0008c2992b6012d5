"""What got worse since the last good run, and at which commit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.verdict import Outcome
from holdfast.store.past_run import CASES, PastCell, PastRun, Regression, compare_runs, find_last_good

SPEC = "/project/holdfast.yaml"


def run(id: str, *, good: bool = True, spec: str = SPEC, part: str = "contract", **cells: Outcome) -> PastRun:
    made = tuple(PastCell(rule, "down", outcome) for rule, outcome in cells.items())
    code = 0 if good else 1
    known = PastRun(id, part, spec=spec, commit=f"c{id}", complete=True, whole=True, passed=good, exit_code=code)
    return replace(known, cells=made)


def test_the_last_good_run_is_of_the_same_file_and_part() -> None:
    runs = [
        run("0001"),
        run("0002"),
        run("0003", good=False),
        run("0004", spec="/project/other.yaml"),
        run("0005", part="scenario"),
    ]
    assert find_last_good(runs, SPEC, "contract") == "0002"
    assert find_last_good(runs, SPEC, "contract", before="0002") == "0001"
    assert find_last_good(runs, SPEC, "contract", before="0001") is None
    assert find_last_good(runs, SPEC, "replay") is None


def test_a_run_of_a_selection_or_one_that_was_left_is_not_good() -> None:
    part = PastRun("0001", "contract", spec=SPEC, complete=True, whole=False, passed=True)
    left = PastRun("0002", "contract", spec=SPEC, complete=False, whole=True, passed=True)
    assert find_last_good([part, left], SPEC, "contract") is None


def test_parts_are_ordered_by_the_number_of_their_run() -> None:
    runs = [run("0009/contract"), run("10000/contract")]
    assert find_last_good(runs, SPEC, "contract") == "10000/contract"


def test_only_what_passed_and_now_fails_is_a_regression() -> None:
    before = run("0001", cites="pass", polite="fail", fast="pass", calm="pass", old="unproven")
    after = run("0002", cites="fail", polite="fail", fast="error", calm="unproven", old="fail", new="fail")
    assert compare_runs(before, after) == (Regression("cites", "down", "pass", "fail", "c0002", "0002"),)


def test_the_commit_is_that_of_the_first_run_in_which_it_failed() -> None:
    runs = [
        run("0001", cites="pass"),
        run("0002", cites="fail"),
        run("0003", cites="pass"),
        run("0004", cites="fail"),
        run("0005", cites="error"),
        run("0006", spec="/other", cites="pass"),
        run("0007", cites="fail"),
    ]
    (found,) = compare_runs(runs[0], runs[-1], runs)
    assert (found.run, found.commit) == ("0004", "c0004")


outcomes = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["pass", "fail", "error", "unproven"]))


@given(before=outcomes, after=outcomes)
def test_what_is_worse_passed_before_and_fails_now(before: dict[str, Outcome], after: dict[str, Outcome]) -> None:
    first, second = run("0001", **before), run("0002", **after)
    assert compare_runs(first, run("0003", **before)) == ()
    found = {one.rule for one in compare_runs(first, second)}
    assert found == {rule for rule in before if before[rule] == "pass" and after.get(rule) == "fail"}


def test_cases_are_named_where_no_rule_is() -> None:
    before = run("0001", **{"cites": "pass", CASES: "pass"})
    assert [one.rule for one in compare_runs(before, run("0002", **{"cites": "fail", CASES: "fail"}))] == ["cites"]
    assert [one.rule for one in compare_runs(before, run("0002", **{"cites": "pass", CASES: "fail"}))] == [CASES]
