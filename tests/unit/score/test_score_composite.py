"""The composite of one trial: weights, gates, forbidden rules, thresholds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.model.observation import ForbiddenResult
from holdfast.model.scenario import Scenario
from holdfast.model.score import Replica
from holdfast.model.spec import Invariant, Scoring
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.score.composite import score_trial

TRIAL = Trial("0123456789ab", "contract", Scenario("calm"), Task(("Do it.",), "task"))


def rule(name: str, weight: float | None = None, *, gate: bool = False, severity: str = "medium") -> Invariant:
    return Invariant(name, "contains", weight=weight, gate=gate, severity=severity)  # type: ignore[arg-type]


def said(name: str, outcome: str, score: float | None = None) -> Verdict:
    value = (1.0 if outcome == "pass" else 0.0) if score is None else score
    return Verdict(TRIAL.id, name, outcome, value, f"{name} says {outcome}")  # type: ignore[arg-type]


def of(
    rules: list[Invariant], verdicts: list[Verdict], scoring: Scoring | None = None, *forbidden: ForbiddenResult
) -> Replica:
    return score_trial(TRIAL, rules, {v.invariant: v for v in verdicts}, forbidden, scoring or Scoring())


def test_the_documents_own_sum(golden: Golden) -> None:
    """must_pass 1.0 holds, nice_to_have 0.3 fails: about 0.77, below 0.85."""
    rules = [rule("must", 1.0, gate=True), rule("nice", 0.3)]
    found = of(rules, [said("must", "pass"), said("nice", "fail")], Scoring(pass_threshold=0.85))
    assert found.composite == pytest.approx(1.0 / 1.3)
    assert found.status == "fail"
    golden(found.reason)


def test_a_failed_gate_forces_nothing_left(golden: Golden) -> None:
    found = of([rule("must", gate=True), rule("other", 9.0)], [said("must", "fail"), said("other", "pass")])
    assert (found.status, found.composite) == ("fail", 0.0)
    golden(found.reason)


def test_a_failed_gate_fails_whatever_the_threshold() -> None:
    found = of([rule("must", gate=True)], [said("must", "fail")], Scoring(pass_threshold=0.0))
    assert found.status == "fail"


def test_a_gate_that_passed_with_less_than_one_is_closed(golden: Golden) -> None:
    rules, verdicts = [rule("tone", gate=True)], [said("tone", "pass", 0.9)]
    golden(of(rules, verdicts).reason)
    assert of(rules, verdicts, Scoring(gate_on="passed")).status == "pass"


def test_without_a_threshold_every_rule_must_pass() -> None:
    found = of([rule("a", 100.0), rule("b", 0.01)], [said("a", "pass"), said("b", "fail")])
    assert (found.status, found.reason) == ("fail", "not passed: b")


def test_an_error_leaves_no_number(golden: Golden) -> None:
    found = of([rule("a"), rule("b")], [said("a", "pass"), said("b", "error")])
    assert (found.status, found.composite) == ("error", None)
    golden(found.reason)


def test_a_rule_that_was_not_judged_is_an_error(golden: Golden) -> None:
    golden(of([rule("a"), rule("b")], [said("a", "pass")]).reason)


def test_unproven_scores_nothing() -> None:
    found = of([rule("a"), rule("b")], [said("a", "pass"), said("b", "unproven", 1.0)], Scoring(pass_threshold=0.5))
    assert (found.status, found.composite) == ("pass", 0.5)


def test_a_forbidden_deed_forces_zero() -> None:
    done = ForbiddenResult("http_except", True, ("GET http://evil/",))
    found = of([rule("a")], [said("a", "pass")], Scoring(pass_threshold=0.0), done)
    assert (found.status, found.composite, found.reason) == ("fail", 0.0, "forbidden: http_except (GET http://evil/)")


def test_a_forbidden_rule_that_cannot_be_told_is_an_error() -> None:
    blind = ForbiddenResult("file_writes_outside", False, error="is undecided: no audit")
    assert of([rule("a")], [said("a", "pass")], Scoring(), blind).status == "error"


def test_severity_is_shorthand_for_weight() -> None:
    rules = [rule("a", severity="critical"), rule("b", severity="low")]
    assert of(rules, [said("a", "pass"), said("b", "fail")]).composite == 0.75


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1)), min_size=1, max_size=8))
def test_a_composite_lies_between_its_scores(parts: list[tuple[float, float]]) -> None:
    rules = [rule(f"r{n}", weight) for n, (weight, _) in enumerate(parts)]
    verdicts = [said(f"r{n}", "pass", score) for n, (_, score) in enumerate(parts)]
    found = of(rules, verdicts, Scoring(pass_threshold=0.0)).composite
    scores = [score for _, score in parts]
    assert found is not None
    assert min(scores) - 1e-9 <= found <= max(scores) + 1e-9
