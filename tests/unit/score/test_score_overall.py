"""The overall score: a weighted mean of what has a score, and every part's own verdict."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import holdfast
from golden_words import Golden
from holdfast.model.codes import load_codes
from holdfast.model.run import PartResult
from holdfast.model.score import Case, Replica, Score
from holdfast.model.spec import PartWeights
from holdfast.score.overall import (
    add_shares,
    combine_with_cases,
    combine_with_forbidden,
    compute_overall_score,
    get_part_weight,
    has_passed,
    is_interrupted,
)
from holdfast.score.resilience import VIOLATED, Reason, ScoreOptions

CONTRACT = PartResult("contract", 80.0, weight=0.35, passed=True)
MUTATION = PartResult("mutation", 50.0, weight=0.2, passed=True)
NOT_RUN = PartResult("replay", weight=0.1, skipped="the file has no replays")


def test_weights_are_renormalised_over_the_parts_with_a_score(golden: Golden) -> None:
    found = compute_overall_score([CONTRACT, MUTATION, NOT_RUN])
    assert [round(part.share, 4) for part in found.parts] == [0.6364, 0.3636, 0.0]
    assert (found.value, found.exit_code) == (69.09, 0)
    golden(found.reasons)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 1)), min_size=1, max_size=4))
def test_the_value_lies_between_its_parts(parts: list[tuple[float, float]]) -> None:
    made = [PartResult("chaos", score, weight=weight, passed=True) for score, weight in parts]
    value = compute_overall_score(made).value
    assert value is not None
    assert min(score for score, _ in parts) - 0.01 <= value <= max(score for score, _ in parts) + 0.01
    assert sum(part.share for part in add_shares(made)) == pytest.approx(1.0)


@pytest.mark.parametrize(("least", "code"), [(None, 0), (69.09, 0), (69.1, 1)])
def test_the_minimum_is_compared_as_it_is_shown(least: float | None, code: int) -> None:
    assert compute_overall_score([CONTRACT, MUTATION], least).exit_code == code


def test_a_minimum_that_errors_of_ours_may_have_cost_is_our_failure() -> None:
    broken = PartResult("contract", 50.0, best=90.0, weight=1.0, passed=True)
    assert compute_overall_score([broken], 80.0).exit_code == 3
    assert compute_overall_score([broken], 95.0).exit_code == 1


@pytest.mark.parametrize(("codes", "code"), [((0, 5), 5), ((5, 1), 1), ((3, 1), 1), ((2, 1), 2), ((5, 3), 3)])
def test_the_worst_verdict_of_a_part_decides(codes: tuple[int, int], code: int) -> None:
    parts = [PartResult("contract", 90.0, weight=1.0, exit_code=one, reasons=("why",)) for one in codes]
    assert compute_overall_score(parts).exit_code == code
    assert is_interrupted(parts) == (2 in codes)


def test_what_else_was_found_decides_too(golden: Golden) -> None:
    found = compute_overall_score([CONTRACT], findings=[Reason(VIOLATED, "rule x is worse", "worse-than-baseline")])
    assert found.exit_code == 1
    golden(found.reasons)


def test_without_any_score_nothing_is_proven_unless_cases_passed() -> None:
    assert compute_overall_score([NOT_RUN]).exit_code == 5
    assert (
        compute_overall_score([PartResult("contract", None, weight=1.0, exit_code=5, reasons=("none",))]).exit_code == 5
    )
    assert compute_overall_score([PartResult("scenario", passed=True, said="1 of 1 case passed")]).exit_code == 0


def test_a_scenario_has_no_weight() -> None:
    weights = PartWeights()
    assert get_part_weight("scenario", weights) == 0.0
    assert get_part_weight("mutation", weights) == weights.mutation > 0


@pytest.mark.slow
def test_every_reason_has_a_documented_code_and_every_code_is_used() -> None:
    source = Path(holdfast.__file__).parent
    calls = [
        node
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Reason", "resilience.Reason")
    ]
    literals = {code.value for call in calls for code in call.args[2:] if isinstance(code, ast.Constant)}
    refused = {f"hunt-{why}" for why in ("budget", "calm-fails", "no-calls", "no-rules", "no-writes")}
    assert literals | refused | {"one-shard"} == set(load_codes()["verdicts"].codes)


# The verdict on a run of cases, with and without a contract beside them.


HELD = Score(100.0, True, 0, reasons=("every cell that counted passed",))
ORDER = (2, 1, 3, 5, 0)
"""Which exit code wins."""


def cases(*statuses: str) -> list[Case]:
    return [Case(f"s{n}", status) for n, status in enumerate(statuses)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statuses", "options", "code"),
    [
        (["pass", "pass"], ScoreOptions(), 0),
        (["pass", "fail"], ScoreOptions(), 1),
        (["pass", "error"], ScoreOptions(), 3),
        (["fail", "error"], ScoreOptions(), 1),
        (["pass", "error"], ScoreOptions(max_errors=1), 0),
        (["error"], ScoreOptions(max_errors=1), 5),
        ([], ScoreOptions(), 5),
        (["pass"], ScoreOptions(interrupted=True), 2),
        (["fail"], ScoreOptions(interrupted=True), 2),
    ],
)
def test_exit_codes_of_cases_alone(statuses: list[str], options: ScoreOptions, code: int) -> None:
    score = combine_with_cases(Score(12.0, False, 1), None, cases(*statuses), options)
    assert (score.exit_code, score.passed, score.value) == (code, code == 0, None)
    assert score.reasons


@pytest.mark.parametrize(
    ("others", "options", "code"),
    [
        ([], ScoreOptions(), 5),
        ([], ScoreOptions(allow_vacuous=True), 0),
        (["pass"], ScoreOptions(), 5),
        (["pass"], ScoreOptions(allow_vacuous=True), 0),
        (["fail"], ScoreOptions(), 1),
        (["error"], ScoreOptions(), 3),
    ],
)
def test_a_case_without_proof_is_neither_a_failure_nor_an_error_of_ours(
    others: list[str], options: ScoreOptions, code: int
) -> None:
    found = [*cases(*others), Case("storm", "error", unproven_only=True, unmet=("r",))]
    score = combine_with_cases(HELD, (), found, options)
    assert (score.exit_code, has_passed(found)) == (code, False)
    assert "every case passed" not in score.reasons


@pytest.mark.parametrize("options", [ScoreOptions(), ScoreOptions(allow_vacuous=True)])
def test_a_case_whose_faults_were_met_and_that_proves_nothing_is_not_allowed_as_a_vacuous_one(
    options: ScoreOptions,
) -> None:
    met = Case("calm", "error", unproven_only=True)
    for one in (met, replace(met, undecided=("r",)), replace(met, undecided=("r",), unmet=("s",))):
        score = combine_with_cases(HELD, (), [*cases("pass"), one], options)
        assert (score.exit_code, score.passed) == (5, False)


def test_a_run_that_was_left_does_not_blame_itself_for_what_it_did_not_reach(golden: Golden) -> None:
    left = Score(None, False, 2, reasons=("the run was interrupted",))
    score = combine_with_cases(
        left,
        (Reason(1, "2 critical cells failed", "critical-cells-failed"),),
        cases("fail", "error"),
        ScoreOptions(interrupted=True),
    )
    golden(score.reasons)


def test_a_rule_without_proof_counts_when_strict() -> None:
    unproven = Score(None, True, 0, counts={"unproven": 1})
    assert combine_with_cases(unproven, None, cases("pass"), ScoreOptions(strict=True)).exit_code == 5
    assert combine_with_cases(unproven, None, cases("pass"), ScoreOptions()).exit_code == 0


@given(st.lists(st.sampled_from(["pass", "fail", "error"]), max_size=5), st.sampled_from([0, 1, 3, 5]))
def test_the_worse_of_cases_and_what_decides_of_the_matrix_decides(statuses: list[str], code: int) -> None:
    contract = Score(50.0, False, 1, counts={"fail": 1}, reasons=("1 cell failed",), reason_codes=("cells-failed",))
    deciding = (Reason(code, "the matrix's", "cells-failed"),) if code else ()
    alone = combine_with_cases(HELD, None, cases(*statuses), ScoreOptions()).exit_code
    both = combine_with_cases(contract, deciding, cases(*statuses), ScoreOptions())
    assert both.exit_code == min((alone, code), key=ORDER.index)
    assert (both.value, both.passed) == (50.0, both.exit_code == 0)
    assert ("the matrix's" in both.reasons) == (code != 0)
    assert "1 cell failed" not in both.reasons


def test_held_says_so_for_both_parts(golden: Golden) -> None:
    score = combine_with_cases(HELD, (), cases("pass"), ScoreOptions())
    golden(score.reasons)


def test_cells_that_failed_next_to_the_cases_are_reported_and_decide_nothing(golden: Golden) -> None:
    contract = Score(50.0, False, 1, counts={"fail": 2}, reasons=("2 cells failed",), reason_codes=("cells-failed",))
    score = combine_with_cases(contract, (), cases("pass"), ScoreOptions())
    assert (score.exit_code, score.passed) == (0, True)
    golden(score.reasons)


def test_a_scenario_without_a_case_has_not_passed() -> None:
    assert has_passed(cases("pass"))
    assert not has_passed([])
    assert not has_passed(cases("pass", "error"))


@pytest.mark.parametrize(
    ("contract", "statuses", "code"),
    [
        (HELD, [], 0),
        (HELD, ["fail"], 1),
        (HELD, ["error"], 3),
        (Score(0.0, False, 1, reasons=("1 cell failed",), reason_codes=("cells-failed",)), ["error"], 1),
        (Score(None, False, 5, reasons=("no cell counted",), reason_codes=("nothing-counted",)), ["fail"], 1),
    ],
)
def test_what_is_forbidden_fails_a_run_of_single_rules(contract: Score, statuses: list[str], code: int) -> None:
    score = combine_with_forbidden(contract, cases(*statuses), ScoreOptions())
    assert (score.exit_code, score.passed) == (code, code == 0)
    assert contract.passed or set(contract.reasons) <= set(score.reasons)


@pytest.mark.parametrize(("statuses", "code"), [(["pass"], 5), (["fail"], 1)])
def test_a_run_that_was_cut_short_never_passes(statuses: list[str], code: int, golden: Golden) -> None:
    for matrix in (None, ()):
        score = combine_with_cases(HELD, matrix, cases(*statuses), ScoreOptions(unrun=2, planned=3))
        assert score.exit_code == code
        golden(score.reasons[-1])
    waiting = Case("s", "error", replicas=(Replica("t", "pass", 1.0),))
    assert combine_with_cases(HELD, (), [waiting], ScoreOptions(unrun=1, planned=2)).exit_code == 5
