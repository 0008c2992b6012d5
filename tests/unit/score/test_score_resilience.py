from __future__ import annotations

from typing import Any

import pytest

from golden_words import Golden
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import Score
from holdfast.model.spec import AgentSpec, Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.verdict import Outcome, Verdict
from holdfast.plan import build_plan
from holdfast.score import ScoreOptions, Tally, score_contract

CALM = Scenario("no-chaos")
TOOL = Scenario("search-tool-down", (Injection("tool", "market_data_api", "error"),))
LLM = Scenario("llm-degraded", (Injection("llm", "*", "truncated_response"),))
MET = (FaultMet(0, "tool", "t", "error", 1),)
WORDS: dict[str, Outcome] = {"p": "pass", "f": "fail", "e": "error", "u": "unproven"}


def rule(id: str, severity: Any = "medium", **more: Any) -> Invariant:
    return Invariant(id, "contains", {"value": "x"}, severity=severity, **more)


def score(
    rules: list[Invariant],
    outcomes: str,
    options: ScoreOptions | None = None,
    *,
    scenarios: tuple[Scenario, ...] = (CALM,),
    ledger: tuple[FaultMet, ...] = MET,
    sequential: bool = False,
    **more: Any,
) -> Score:
    given: dict[str, Any] = {"path": "c.yaml", "agent": AgentSpec(), "tasks": (Task(("one",)),)}
    given |= {"scenarios": scenarios, "invariants": tuple(rules), "cell_rules": tuple(r.id for r in rules)} | more
    made = Spec(**given)
    planned = build_plan(made, sequential=sequential)
    tally = Tally(made, planned)
    for trial, letter in zip(planned.trials, outcomes, strict=True):
        verdict = Verdict(trial.id, trial.invariant, WORDS[letter], 0.0, "because")
        tally.add(trial, Observation(trial.id, ledger=ledger), verdict)
    return score_contract(tally, options or ScoreOptions())[0]


FINANCE = [
    rule("always-cite-source", "critical"),
    rule("never-fabricate", "critical", when="tool_faults_active"),
    rule("max-latency"),
]


def test_the_sketched_finance_contract_scores_as_sketched():
    found = score(FINANCE, "pp" + "pfp" + "fp", scenarios=(CALM, TOOL, LLM))
    assert (found.value, found.calm, found.chaos) == (60.0, 100.0, 45.45)
    assert found.interval is not None
    assert (round(found.interval.low), round(found.interval.high), found.interval.approximate) == (25, 87, True)
    assert (found.judged, found.total) == (7, 7)
    assert found.counts == {"pass": 5, "fail": 2, "error": 0, "unproven": 0, "n/a": 2}
    assert (found.passed, found.exit_code, found.reasons) == (False, 1, ("2 critical cells failed",))
    assert found.critical_failed == ("never-fabricate in search-tool-down", "always-cite-source in llm-degraded")
    assert found.trials == 7


@pytest.mark.parametrize(
    ("severities", "outcomes", "value"),
    [
        (["critical", "high", "medium", "low"], "fppp", 57.14),
        (["critical", "high", "medium", "low"], "pfpp", 71.43),
        (["critical", "high", "medium", "low"], "ppff", 71.43),
        (["critical", "high"], "ff", 0.0),
        (["critical", "high"], "pe", 100.0),
        (["critical", "high", "low"], "upf", 66.67),
        (["critical"], "e", None),
    ],
)
def test_the_formula_weighs_by_severity_and_leaves_error_and_unproven_out(severities, outcomes, value):
    found = score([rule(f"r{i}", s) for i, s in enumerate(severities)], outcomes)
    assert found.value == value
    assert str(found.value) != "-0.0"


def test_a_weight_for_the_composite_does_not_change_the_resilience_score():
    assert score([rule("a", weight=9.0), rule("b")], "pf").value == 50.0


def test_a_gate_counts_as_critical():
    found = score([rule("a", "low", gate=True), rule("b", "critical")], "fp", ScoreOptions(min_score=0))
    assert (found.value, found.exit_code) == (50.0, 1)


# -- verdict --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("outcomes", "options", "code"),
    [
        ("pp", {}, 0),
        ("pf", {"min_score": 80}, 1),
        # Error cells: exit 3 unless so many are allowed.
        ("pe", {}, 3),
        ("pe", {"max_errors": 1}, 0),
        ("pee", {"max_errors": 1}, 3),
        # Below the minimum counts only if it would be so with every error cell passed, and then errors decide.
        ("pfe", {"min_score": 60}, 3),
        ("pfe", {"min_score": 70}, 1),
        ("pfe", {"min_score": 60, "max_errors": 1}, 3),
        ("pfe", {"min_score": 50, "max_errors": 1}, 0),
        ("pu", {}, 0),
        ("pu", {"strict": True}, 5),
        # Precedence: 2, then 1, then 3, then 5.
        ("feu", {"strict": True, "interrupted": True}, 2),
        ("feu", {"strict": True}, 1),
        ("peu", {"strict": True}, 3),
        ("ppu", {"strict": True}, 5),
    ],
)
def test_the_exit_code_and_its_reasons(outcomes: str, options: dict[str, Any], code: int, golden: Golden):
    found = score([rule(id) for id in "abc"[: len(outcomes)]], outcomes, ScoreOptions(**options))
    assert (found.exit_code, found.passed) == (code, code == 0)
    golden(found.reasons)


def test_the_specs_minimum_holds_unless_the_caller_gives_one():
    scoring = Scoring(min_score=80)
    assert score([rule("a"), rule("b")], "pf", scoring=scoring).exit_code == 1
    assert score([rule("a"), rule("b")], "pf", ScoreOptions(min_score=0), scoring=scoring).exit_code == 0


def test_without_a_minimum_any_failed_cell_fails():
    found = score([rule("a"), rule("b", "low")], "pf")
    assert (found.passed, found.exit_code, found.reasons) == (False, 1, ("1 cell failed",))
    assert found.tolerated == ()


def test_a_minimum_tolerates_the_others_and_names_them(golden: Golden):
    found = score([rule("a"), rule("b")], "pf", ScoreOptions(min_score=50))
    assert (found.passed, found.exit_code, found.tolerated) == (True, 0, ("b in no-chaos",))
    golden(found.reasons)
    assert found.min_score == 50


def test_a_minimum_never_excuses_a_critical_cell():
    found = score([rule("a", "critical"), rule("b"), rule("c")], "fpf", ScoreOptions(min_score=0))
    assert (found.exit_code, found.reasons) == (1, ("1 critical cell failed",))
    assert found.tolerated == ("c in no-chaos",)


def test_critical_and_other_failures_are_both_named():
    found = score([rule("a", "critical"), rule("b"), rule("c")], "fff")
    assert found.reasons == ("1 critical cell failed", "2 other cells failed")


def test_nothing_counted_is_exit_5_with_no_score():
    found = score([rule("a")], "u")
    assert (found.value, found.interval, found.exit_code, found.reasons) == (None, None, 5, ("no cell counted",))
    assert (found.judged, found.total) == (0, 1)
    nothing = score([rule("a", when="tool_faults_active")], "")
    assert (nothing.exit_code, nothing.total) == (5, 0)


def test_a_vacuous_scenario_is_exit_5_unless_allowed(golden: Golden):
    run: dict[str, Any] = {"scenarios": (CALM, LLM), "ledger": ()}
    found = score([rule("a")], "pp", **run)
    assert (found.exit_code, found.vacuous) == (5, ("llm-degraded",))
    golden(found.reasons)
    allowed = score([rule("a")], "pp", ScoreOptions(allow_vacuous=True), **run)
    assert (allowed.exit_code, allowed.vacuous) == (0, ("llm-degraded",))


def test_cells_with_params_are_distinguished_by_name():
    found = score([rule("a", "critical")], "ff", params=({"m": "x"}, {"m": "y"}))
    assert found.critical_failed == ("a in no-chaos (m=x)", "a in no-chaos (m=y)")


# -- how sure -------------------------------------------------------------------------------------
def test_one_sample_never_shows_a_zero_error_bar():
    found = score([rule("a")], "p")
    assert found.interval is not None
    assert (found.value, found.interval.high) == (100.0, 100.0)
    assert found.interval.low < 50.0


def test_from_8_prompts_on_the_interval_is_a_bootstrap_by_prompt():
    rules = [rule("a"), rule("b"), rule("c")]
    outcomes = "p" * 8 + "f" + "p" * 7 + "ff" + "p" * 6
    eight = tuple(Task((f"q{i}",)) for i in range(8))
    found = score(rules, outcomes, tasks=eight)
    assert found.interval is not None
    assert found.interval.method == "bootstrap"
    assert found.interval.low <= 33.33 <= found.interval.high
    assert found == score(rules, outcomes, tasks=eight)
    seven = score(rules, "p" * 7 + "f" + "p" * 6 + "ff" + "p" * 5, tasks=eight[:7])
    assert seven.interval is not None
    assert seven.interval.method == "kish"


def test_from_20_prompts_on_the_interval_is_not_called_approximate():
    twenty = tuple(Task((f"q{i}",)) for i in range(20))
    found = score([rule("a"), rule("b")], "p" * 20 + "f" + "p" * 19, tasks=twenty).interval
    assert found is not None
    assert (found.method, found.prompts, found.approximate) == ("bootstrap", 20, False)
    few = score([rule("a")], "p" * 19, tasks=twenty[:19]).interval
    assert few is not None
    assert (few.prompts, few.approximate) == (19, True)


def test_eight_prompts_that_all_agree_still_have_an_error_bar():
    found = score([rule("a")], "p" * 8, tasks=tuple(Task((f"q{i}",)) for i in range(8)))
    assert found.interval is not None
    assert (found.interval.method, found.interval.low < 50.0) == ("bootstrap", True)


def test_a_calm_scenario_beside_the_score_is_shown_and_does_not_count():
    found = score([rule("a"), rule("b")], "pp" + "pf", scenarios=(CALM, TOOL), beside=(CALM.name,))
    assert (found.value, found.calm, found.chaos, found.total) == (50.0, 100.0, 50.0, 2)


def test_pass_hat_is_the_mean_over_cells_where_there_are_replicas():
    found = score([rule("a"), rule("b")], "pppp" + "ppff", replicas=4)
    assert found.pass_hat == pytest.approx({"1": 0.75, "2": (1 + 1 / 6) / 2, "3": 0.5, "4": 0.5})
    assert found.flaky == 1
    assert found.replicas == 4
    assert score([rule("a")], "p").pass_hat == {}
    assert score([rule("a")], "pf", replicas=2).pass_hat == {"1": 0.5, "2": 0.0}
    assert score([rule("a")], "pf", replicas=2, sequential=True).pass_hat == {}  # its tries decided where it stopped


def test_pass_hat_leaves_out_cells_that_did_not_count_and_k_beyond_the_decided():
    found = score([rule("a"), rule("b")], "ppe" + "pff", replicas=3)
    assert found.pass_hat == pytest.approx({"1": 1 / 3, "2": 0.0, "3": 0.0})


@pytest.mark.parametrize(("least", "code"), [(66.67, 0), (66.666, 0), (66.0, 0), (66.68, 1), (66.675, 1), (100.0, 1)])
def test_the_minimum_is_compared_with_the_score_as_it_is_shown(least, code):
    found = score([rule(f"r{n}") for n in range(3)], "ppf", ScoreOptions(min_score=least))
    assert (found.value, found.exit_code) == (66.67, code)


@pytest.mark.parametrize("letter", ["u", "e"])
@pytest.mark.parametrize("kind", [{"severity": "critical"}, {"gate": True}])
def test_a_critical_rule_of_which_no_cell_counted_proves_nothing(letter, kind, golden: Golden):
    rules = [rule("must", when="tool_faults_active", **kind), rule("nice")]
    found = score(rules, "p" + letter + "p", ScoreOptions(max_errors=1), scenarios=(CALM, TOOL))
    assert found.exit_code == 5
    golden(found.reasons)


def test_a_critical_rule_that_applies_nowhere_or_counted_somewhere_asks_for_nothing():
    nowhere = [rule("must", "critical", when="llm_faults_active"), rule("nice")]
    assert score(nowhere, "pp", scenarios=(CALM, TOOL)).exit_code == 0
    somewhere = [rule("must", "critical"), rule("nice")]
    assert score(somewhere, "ppup", scenarios=(CALM, TOOL)).exit_code == 0
    light = [rule("may", "high", when="tool_faults_active"), rule("nice")]
    assert score(light, "pup", scenarios=(CALM, TOOL)).exit_code == 0
