"""A rule whose fault was never met: what a case comes to without it."""

from __future__ import annotations

import pytest

from golden_words import Golden
from holdfast.model.observation import FaultMet, ForbiddenResult, Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import Case, Score
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.verdict import Verdict
from holdfast.plan import build_plan
from holdfast.score.cases import Cases
from holdfast.score.composite import UNMET
from holdfast.score.overall import combine_with_cases
from holdfast.score.resilience import ScoreOptions

ALL = Aggregation("all")
SIGNS = {"p": "pass", "f": "fail", "u": "unproven", "e": "error"}
BARE = Score(100.0, True, 0, reasons=("every cell that counted passed",))


def case(
    *outcomes: str,
    nice: float = 0.1,
    gate: bool = False,
    gate_on: str = "score",
    threshold: float | None = 0.85,
    how: Aggregation = ALL,
    broke: str = "",
    met: bool = True,
) -> Case:
    """One of two rules: `main`, whose fault was met, and `nice`, whose fault was not. Each word is a replica."""
    spec = Spec(
        "spec.yaml",
        AgentSpec(),
        tasks=(Task(("Do it.",), "task"),),
        invariants=(
            Invariant("main", "output_not_empty", weight=1.0, when="tool_faults_active"),
            Invariant("nice", "completes", weight=nice, when="llm_faults_active", gate=gate),
        ),
        scenarios=(Scenario("storm", (Injection("tool", "*", "error"), Injection("llm", "*", "timeout"))),),
        replicas=len(outcomes),
        scoring=Scoring(pass_threshold=threshold, replica_aggregation=how, gate_on=gate_on),  # type: ignore[arg-type]
    )
    made = build_plan(spec)
    gathered = Cases(spec, made)
    for trial, signs in zip(made.trials, outcomes, strict=True):
        verdicts = [
            Verdict(trial.id, rule, SIGNS[sign], float(sign == "p"), f"{rule} says {sign}")  # type: ignore[arg-type]
            for rule, sign in zip(("main", "nice"), signs, strict=True)
        ]
        ledger = (FaultMet(0, "tool", "*", "error", 1, "met" if met else "no_effect"),)
        bad = (ForbiddenResult(broke, True, ("GET http://evil/",)),) if broke else ()
        gathered.add(trial, Observation(trial.id, ledger=ledger, forbidden=bad), verdicts)
    (found,) = gathered.iter_cases()
    return found


def test_a_case_that_passes_without_the_rule_passes() -> None:
    found = case("pp")
    assert (found.status, found.unproven_only, found.unmet, found.reason) == ("pass", False, ("nice",), "")
    assert found.composite == pytest.approx(1 / 1.1)
    assert [one.composite for one in found.replicas] == [found.composite]


def test_a_rule_that_failed_is_not_a_pass_that_proves_nothing() -> None:
    found = case("pf")
    assert (found.status, found.unproven_only, found.reason) == ("pass", False, "")
    assert found.composite == pytest.approx(1 / 1.1)


def test_a_case_that_passes_no_other_way_is_undecided() -> None:
    found = case("pp", nice=0.5)
    assert (found.status, found.unproven_only, found.composite) == ("error", True, None)
    assert found.reason == f"nice: {UNMET.reason}"
    assert [(one.status, one.composite, one.reason) for one in found.replicas] == [("error", None, found.reason)]


def test_without_a_threshold_every_rule_must_be_proven() -> None:
    assert case("pp", threshold=None).unproven_only
    failed = case("pf", threshold=None)
    assert (failed.status, failed.unproven_only, failed.reason) == ("fail", False, "not passed: nice")


@pytest.mark.parametrize("gate_on", ["score", "passed"])
def test_a_gate_that_proves_nothing_leaves_the_case_open(gate_on: str) -> None:
    found = case("pp", gate=True, gate_on=gate_on)
    assert (found.status, found.unproven_only, found.reason) == ("error", True, f"nice: {UNMET.reason}")
    assert case("pp", gate=True, gate_on=gate_on, threshold=0.0).unproven_only
    failed = case("pf", gate=True, gate_on=gate_on)
    assert (failed.status, failed.composite) == ("fail", 0.0)
    assert failed.reason.endswith("nice says f")


def test_a_failed_case_counts_the_rule_as_nothing_and_names_what_failed(golden: Golden) -> None:
    found = case("fp", nice=0.5)
    assert (found.status, found.unproven_only, found.composite) == ("fail", False, 0.0)
    golden(found.reason)


def test_a_forbidden_deed_fails_whatever_was_met() -> None:
    found = case("pp", broke="http_except")
    assert (found.status, found.composite, found.reason) == (
        "fail",
        0.0,
        "forbidden: http_except (GET http://evil/)",
    )


def test_an_error_of_ours_stays_one(golden: Golden) -> None:
    found = case("pe", "pp", nice=0.5)
    assert (found.status, found.unproven_only) == ("error", False)
    golden(found.reason)


OPEN, PASS, FAIL = ("error", True), ("pass", False), ("fail", False)


@pytest.mark.parametrize(
    ("how", "outcomes", "expected"),
    [  # heavy enough to matter: pp is open, pf fails, fp fails
        (ALL, ("pp", "pp"), OPEN),
        (ALL, ("pp", "fp"), FAIL),
        (Aggregation("any"), ("pp", "fp"), OPEN),
        (Aggregation("any"), ("fp", "pf"), FAIL),
        (Aggregation("majority"), ("pp", "pp", "fp"), OPEN),
        (Aggregation("majority"), ("pp", "fp", "fp"), FAIL),
        (Aggregation("at_least", 2), ("pp", "pp", "fp"), OPEN),
        (Aggregation("at_least", 2), ("pp", "fp", "ff"), FAIL),
        (Aggregation("rate", 0.5), ("pp", "fp"), OPEN),
        (Aggregation("mean"), ("pp", "pp"), OPEN),
        (Aggregation("mean"), ("pp", "fp"), FAIL),
    ],
)
def test_replicas_that_prove_nothing_decide_nothing(
    how: Aggregation, outcomes: tuple[str, ...], expected: tuple[str, bool]
) -> None:
    found = case(*outcomes, nice=0.5, how=how)
    assert (found.status, found.unproven_only) == expected


@pytest.mark.parametrize("how", [ALL, Aggregation("any"), Aggregation("majority"), Aggregation("mean")])
def test_replicas_that_pass_without_the_rule_pass_together(how: Aggregation) -> None:
    found = case("pp", "pf", how=how)
    assert (found.status, found.unproven_only, found.composite) == (*PASS, pytest.approx(1 / 1.1))


def test_a_mean_is_of_what_each_comes_to_without_the_rule() -> None:
    mean = Aggregation("mean")
    assert case("pp", "pp", nice=0.5, threshold=0.6, how=mean).composite == pytest.approx(2 / 3)
    assert case("pp", "ff", nice=0.5, threshold=0.3, how=mean).status == "pass"
    assert case("pp", "ff", nice=0.5, threshold=0.4, how=mean).unproven_only


@pytest.mark.parametrize("how", [ALL, Aggregation("any"), Aggregation("majority"), Aggregation("mean")])
@pytest.mark.parametrize("outcomes", [("pp",), ("ff",), ("uu",), ("pf", "fp", "pp")])
def test_no_threshold_is_low_enough_for_a_case_that_met_no_fault(how: Aggregation, outcomes: tuple[str, ...]) -> None:
    found = case(*outcomes, threshold=0.0, how=how, met=False)
    assert (found.status, found.unproven_only, found.composite) == ("error", True, None)
    assert found.reason.endswith("nothing is proven")
    assert {(one.status, one.composite) for one in found.replicas} == {("error", None)}
    assert all(one.reason.endswith("nothing is proven") for one in found.replicas)
    assert combine_with_cases(BARE, (), [found], ScoreOptions()).exit_code == 5


def test_a_case_that_met_no_fault_still_fails_by_its_threshold_and_by_forbidden_deeds() -> None:
    assert case("ff", threshold=0.5, met=False).status == "fail"
    assert case("pp", threshold=0.0, met=False, broke="http_except").status == "fail"
    assert case("pf", threshold=0.0, gate=True, met=False).status == "fail"


@pytest.mark.parametrize(
    ("found", "options", "code"),
    [
        (case("pp"), ScoreOptions(), 0),
        (case("pp", nice=0.5), ScoreOptions(), 5),
        (case("pp", nice=0.5), ScoreOptions(allow_vacuous=True), 0),
        (case("fp"), ScoreOptions(), 1),
        (case("pe"), ScoreOptions(), 3),
    ],
)
def test_exit_codes(found: Case, options: ScoreOptions, code: int) -> None:
    assert combine_with_cases(BARE, (), [found], options).exit_code == code
