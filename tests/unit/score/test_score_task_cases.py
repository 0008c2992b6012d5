"""Mutations and sessions as cases: every rule holds, and no attack is obeyed."""

from __future__ import annotations

import pytest
from task_score_kit import STORM, cases_of, mutation, mutation_spec, tallied

from golden_words import Golden
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Injection, Scenario, When
from holdfast.model.spec import Aggregation, Invariant, Scoring
from holdfast.model.task import RecordedResponse, RecordedUse, Recording, Task
from holdfast.model.verdict import CauseKey, Verdict
from holdfast.plan import build_plan
from holdfast.score import Tally
from holdfast.score.composite import UNMET
from holdfast.score.task_cases import OBEYED


@pytest.mark.parametrize(
    ("outcomes", "how", "status", "unproven"),
    [
        ("ppp", "all", "pass", False),
        ("ppf", "all", "fail", False),
        ("ppe", "all", "error", False),
        ("ppu", "all", "error", True),
        ("peu", "all", "error", False),
        ("pue", "any", "pass", False),
        ("ppf", "majority", "pass", False),
        ("ffe", "majority", "fail", False),
        ("pfu", "majority", "error", True),
        ("pp", "all", "error", True),
    ],
)
def test_replicas_combine(outcomes: str, how: str, status: str, unproven: bool) -> None:
    scoring = Scoring(replica_aggregation=Aggregation(how))  # type: ignore[arg-type]
    (case,) = cases_of(mutation_spec([mutation()], replicas=3, scoring=scoring), outcomes)
    assert (case.status, case.unproven_only) == (status, unproven)


def test_an_attack_that_was_obeyed_fails_though_every_rule_holds() -> None:
    resisted, obeyed = cases_of(mutation_spec([mutation("a", attack=True), mutation("b", attack=True)]), "po")
    assert (resisted.status, resisted.obeyed) == ("pass", False)
    assert (obeyed.status, obeyed.obeyed, obeyed.causes, obeyed.failed) == ("fail", True, (CauseKey("", OBEYED),), ())


def test_what_does_not_attack_is_not_blamed_for_a_canary() -> None:
    (case,) = cases_of(mutation_spec([mutation()]), "o")
    assert (case.status, case.obeyed) == ("pass", False)


@pytest.mark.parametrize("turns", [(), (Turn("?", ""),), (Turn("?", " \n"),), (Turn("?", None, ending="timeout"),)])
@pytest.mark.parametrize(("attack", "status"), [(False, "fail"), (True, "error")])
@pytest.mark.parametrize("error", ["", "the pipe broke"])
def test_an_empty_answer_fails_what_keeps_the_intent(
    turns: tuple[Turn, ...], attack: bool, status: str, error: str
) -> None:
    spec = mutation_spec([mutation(attack=attack)])
    made = build_plan(spec)
    tally = Tally(spec, made)
    (trial,) = made.trials
    verdict = Verdict(trial.id, "held", "unproven", 0.0, "no text")
    tally.add_trial(trial, Observation(trial.id, turns, error=error), [verdict])
    (case,) = tally.cases.iter_cases()
    assert (case.status, case.unproven_only) == (("error", True) if error else (status, status == "error"))


def test_a_case_names_its_origin_its_failed_rules_and_how_many_replicas_passed(golden: Golden) -> None:
    task = mutation("tone_shift")
    (case,) = cases_of(mutation_spec([task], replicas=2), "pf")
    assert (case.variation, case.flaky, case.failed) == (task.variation, True, ("held",))
    golden(case.reason)


def test_a_session_keeps_its_id_and_what_went_wrong_then() -> None:
    task = Task(("Hi",), "replay", recording=Recording("s1", expected_failure="it lied"))
    (case,) = cases_of(mutation_spec([task]), "p")
    assert (case.session, case.expected_failure, case.variation) == ("s1", "it lied", None)


DOWN, UP = RecordedResponse("search", status=503), RecordedResponse("search")
NOT_THERE, LET_THROUGH = RecordedUse("book", 0, "tool", 0), RecordedUse("book", 0, "tool", 0, passed=True)
FAILED, ANSWERED = RecordedUse("search", 1, "tool", 503), RecordedUse("search", 1, "tool")


@pytest.mark.parametrize(
    ("responses", "uses", "seed", "passing", "failing"),
    [
        ((), (), None, "", "fail"),
        ((), (NOT_THERE,), None, "session-tools-unrecorded", "session-tools-unrecorded"),
        ((), (NOT_THERE,), 7, "session-call-unknown", "session-call-unknown"),
        ((UP,), (ANSWERED, NOT_THERE), 7, "session-call-unknown", "session-call-unknown"),
        ((UP,), (ANSWERED, LET_THROUGH), 7, "", "fail"),
        ((), (LET_THROUGH,), None, "", "fail"),
        ((UP,), (ANSWERED, NOT_THERE), None, "", "fail"),
        ((UP,), (), None, "session-untouched", "fail"),
        ((UP,), (NOT_THERE,), None, "session-untouched", "fail"),
        ((UP,), (), 7, "", "fail"),
        ((UP, DOWN), (ANSWERED,), None, "session-not-reached", "fail"),
        ((UP, DOWN), (ANSWERED, FAILED), None, "", "fail"),
        ((UP, DOWN), (), 7, "session-not-reached", "fail"),
    ],
)
def test_a_session_is_unproven_where_the_agent_did_not_come_to_what_was_recorded(
    responses: tuple[RecordedResponse, ...], uses: tuple[RecordedUse, ...], seed: int | None, passing: str, failing: str
) -> None:
    spec = mutation_spec([Task(("Hi",), "replay", recording=Recording("s", responses, seed=seed))])
    for outcome, why in (("p", passing), ("f", failing)):
        (case,) = tallied(spec, outcome, recorded=uses).cases.iter_cases()
        proven = why in ("", "fail")
        assert case.unproven_only is not proven
        assert case.status == ("error" if not proven else why or "pass")
        assert proven or case.causes[-1].code == why
        assert case.failed == (("held",) if why == "fail" else ())


@pytest.mark.parametrize("when", ["always", "any_chaos_active", "tool_faults_active", "llm_faults_active"])
def test_a_rule_passes_in_a_session_with_faults_only_if_those_that_it_asks_for_were_met(when: When) -> None:
    rules = (Invariant("held", "output_not_empty", recorded_when=when, sessions=("s",)),)
    storm = Scenario("storm", (Injection("tool", "x", "error"), Injection("llm", "*", "empty")))
    task = Task(("Hi",), "replay", recording=Recording("s", scenario="storm", seed=7))
    spec = mutation_spec([task], invariants=rules, scenarios=(storm,))
    (met,) = cases_of(spec, "p")
    assert met.status == ("error" if when == "llm_faults_active" else "pass")
    (unmet,) = cases_of(spec, "p", met=False)
    assert (unmet.unproven_only, unmet.unmet) == (True, ("held",))


@pytest.mark.parametrize(("outcome", "status"), [("p", "error"), ("f", "fail")])
def test_a_pass_in_weather_that_was_not_met_is_unproven_and_a_failure_stays(outcome: str, status: str) -> None:
    (case,) = cases_of(mutation_spec([mutation()], scenarios=(STORM,)), outcome, met=False)
    assert (case.status, case.unproven_only, case.unmet) == (status, outcome == "p", ("held",))
    if outcome == "p":
        assert case.reason == f"held: {UNMET.reason}"
    (met,) = cases_of(mutation_spec([mutation()], scenarios=(STORM,)), "p")
    assert met.status == "pass"


def test_a_rule_for_attacks_judges_them_alone_and_the_others_are_not_asked() -> None:
    rules = (Invariant("held", "output_not_empty", attacks_only=True),)
    (case,) = cases_of(mutation_spec([mutation(), mutation("a", attack=True)], invariants=rules), "p")
    assert case.prompt == "a 0"


def test_a_run_is_lost_at_the_first_failure_that_nothing_can_mend() -> None:
    spec = mutation_spec([mutation()], replicas=3, scoring=Scoring(replica_aggregation=Aggregation("majority")))
    assert not tallied(spec, "f").cases.lost
    assert tallied(spec, "ff").cases.lost
