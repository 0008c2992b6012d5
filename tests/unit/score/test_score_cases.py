"""Cases: replicas combined to a status."""

from __future__ import annotations

import pytest

from golden_words import Golden
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import Case
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.verdict import Verdict
from holdfast.plan import build_plan
from holdfast.score.cases import Cases
from holdfast.score.composite import UNMET


def cases(outcomes: str, how: Aggregation, threshold: float | None = None, replicas: int | None = None) -> Case:
    """One case whose replicas passed (p), failed (f) or broke (e)."""
    spec = Spec(
        "spec.yaml",
        AgentSpec(),
        tasks=(Task(("Do it.",), "task"),),
        invariants=(Invariant("held", "output_not_empty"),),
        scenarios=(Scenario("calm"),),
        replicas=replicas or len(outcomes),
        scoring=Scoring(replica_aggregation=how, pass_threshold=threshold),
    )
    made = build_plan(spec)
    gathered = Cases(spec, made)
    for trial, sign in reversed(list(zip(made.trials, outcomes, strict=False))):  # any order
        outcome = {"p": "pass", "f": "fail", "e": "error"}[sign]
        verdict = Verdict(trial.id, "held", outcome, float(sign == "p"), f"because {sign}")  # type: ignore[arg-type]
        gathered.add(trial, Observation(trial.id), [verdict])
    (case,) = gathered.iter_cases()
    return case


@pytest.mark.parametrize(
    ("outcomes", "how", "status"),
    [
        ("ppp", Aggregation("all"), "pass"),
        ("ppf", Aggregation("all"), "fail"),
        ("ppe", Aggregation("all"), "error"),
        ("pfe", Aggregation("all"), "fail"),
        ("ffp", Aggregation("any"), "pass"),
        ("ffe", Aggregation("any"), "error"),
        ("ppf", Aggregation("majority"), "pass"),
        ("pf", Aggregation("majority"), "fail"),
        ("pffe", Aggregation("at_least", 2), "error"),
        ("ppff", Aggregation("at_least", 2), "pass"),
        ("ppppf", Aggregation("rate", 0.8), "pass"),
        ("pppff", Aggregation("rate", 0.8), "fail"),
    ],
)
def test_replicas_combine(outcomes: str, how: Aggregation, status: str) -> None:
    assert cases(outcomes, how).status == status


def test_a_mean_is_of_composites() -> None:
    assert cases("ppf", Aggregation("mean"), 0.6).status == "pass"
    assert cases("pff", Aggregation("mean"), 0.6).status == "fail"
    assert cases("ppe", Aggregation("mean"), 0.6).status == "pass"  # whatever the third had been
    assert cases("pe", Aggregation("mean"), 0.6).status == "error"


def test_replicas_that_disagree_are_flaky() -> None:
    assert cases("pf", Aggregation("any")).flaky
    assert not cases("pp", Aggregation("any")).flaky
    assert not cases("pe", Aggregation("any")).flaky


def test_a_case_that_was_interrupted_is_not_a_pass(golden: Golden) -> None:
    case = cases("p", Aggregation("all"), replicas=3)
    assert case.status == "error"
    golden(case.reason)


def test_a_failed_case_says_how_many_and_why(golden: Golden) -> None:
    golden(cases("pf", Aggregation("all")).reason)


def test_the_composite_is_the_mean_of_its_replicas() -> None:
    assert cases("ppff", Aggregation("any")).composite == 0.5
    assert cases("pe", Aggregation("any")).composite is None


def stormy(*met: int, sign: str = "p", when: str = "always", effect: str = "met", trials: int = 2) -> Case:
    """A case in a storm of a tool fault (0) and a model fault (1); its first trial met some of them."""
    faults = (Injection("tool", "*", "error"), Injection("llm", "*", "timeout"))
    spec = Spec(
        "spec.yaml",
        AgentSpec(),
        tasks=(Task(("Do it.",), "task"),),
        invariants=(Invariant("held", "output_not_empty"), Invariant("told", "completes", when=when)),  # type: ignore[arg-type]
        scenarios=(Scenario("storm", faults),),
        replicas=trials,
    )
    made = build_plan(spec)
    gathered = Cases(spec, made)
    for n, trial in enumerate(made.trials):
        outcome = {"p": "pass", "f": "fail"}[sign]
        ledger = tuple(FaultMet(index, "tool", "*", "error", 1, effect) for index in met if not n)  # type: ignore[arg-type]
        verdicts = [Verdict(trial.id, rule, outcome, float(sign == "p"), "r") for rule in ("held", "told")]  # type: ignore[arg-type]
        gathered.add(trial, Observation(trial.id, ledger=ledger), verdicts)
    (case,) = gathered.iter_cases()
    return case


def test_a_case_that_met_no_fault_has_not_passed() -> None:
    case = stormy()
    assert (case.status, case.unproven_only, case.composite, case.unmet) == ("error", True, None, ("held", "told"))
    assert case.reason == f"held, told: {UNMET.reason}"
    assert [(one.status, one.composite, one.reason) for one in case.replicas] == [("error", None, case.reason)] * 2


def test_a_fault_that_had_no_effect_was_not_met() -> None:
    assert stormy(0, effect="no_effect").unproven_only


def test_one_trial_that_met_a_fault_is_enough() -> None:
    case = stormy(0)
    assert (case.status, case.unproven_only, case.composite, case.unmet) == ("pass", False, 1.0, ())


def test_a_rule_needs_a_fault_of_its_own_kind() -> None:
    assert stormy(0, when="tool_faults_active").status == "pass"
    case = stormy(1, when="tool_faults_active")
    assert (case.status, case.unproven_only, case.unmet) == ("error", True, ("told",))


def test_a_violation_needs_no_fault() -> None:
    case = stormy(sign="f")
    assert (case.status, case.unproven_only, case.composite) == ("fail", False, 0.0)
    assert case.unmet == ("held", "told")


def test_a_rule_that_a_fault_left_unproven_is_not_held_against_the_agent() -> None:
    for sign, threshold, expected in (
        ("p", None, ("error", True)),  # it depends on the deed
        ("p", 0.4, ("pass", False)),  # enough without it
        ("f", None, ("fail", False)),  # not enough with it
    ):
        faults = (Injection("tool", "*", "error"),)
        spec = Spec(
            "spec.yaml",
            AgentSpec(),
            tasks=(Task(("Do it.",), "task"),),
            invariants=(
                Invariant("held", "output_not_empty"),
                Invariant("once", "side_effect_once", gate=threshold is None),
            ),
            scenarios=(Scenario("storm", faults),),
            scoring=Scoring(pass_threshold=threshold),
        )
        made = build_plan(spec)
        gathered = Cases(spec, made)
        (trial,) = made.trials
        said = Verdict(trial.id, "held", "pass" if sign == "p" else "fail", float(sign == "p"), "r")
        did = Verdict(trial.id, "once", "unproven", 0.0, "it ran", code="tool-ran")
        ledger = (FaultMet(0, "tool_result", "pay", "error", 1, ran=True),)
        gathered.add(trial, Observation(trial.id, ledger=ledger), [said, did])
        (case,) = gathered.iter_cases()
        assert (case.status, case.unproven_only) == expected
        if case.unproven_only:
            assert (case.reason, case.undecided) == ("once: it ran", ("once",))
