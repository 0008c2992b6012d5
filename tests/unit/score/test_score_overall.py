"""The overall score: a weighted mean of what has a score, and every part's own verdict."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from golden_words import Golden
from holdfast.model.codes import load_codes
from holdfast.model.run import PartResult
from holdfast.model.spec import PartWeights
from holdfast.score.overall import add_shares, compute_overall_score, get_part_weight, is_interrupted
from holdfast.score.resilience import VIOLATED, Reason

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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason"
    ]
    literals = {code.value for call in calls for code in call.args[2:] if isinstance(code, ast.Constant)}
    refused = {f"hunt-{why}" for why in ("budget", "calm-fails", "no-calls", "no-rules", "no-writes")}
    assert literals | refused | {"one-shard"} == set(load_codes()["verdicts"].codes)
