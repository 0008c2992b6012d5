from __future__ import annotations

import sys
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.score import Cell
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Outcome, Verdict
from holdfast.plan import Select, build_plan
from holdfast.score import Tally
from holdfast.score.intervals import compute_wilson

CALM = Scenario("calm")
TOOL = Scenario("tool-down", (Injection("tool", "market_data_api", "error"),))
LLM = Scenario("llm-degraded", (Injection("llm", "*", "empty"),))
MIXED = Scenario("mixed", (Injection("llm", "*", "empty"), Injection("tool", "search", "error")))
WORDS: dict[str, Outcome] = {"p": "pass", "f": "fail", "e": "error", "u": "unproven"}


def rule(id: str = "r", **more: Any) -> Invariant:
    return Invariant(id, "contains", {"value": "x"}, **more)


def spec(*rules: Invariant, cell: bool = True, **more: Any) -> Spec:
    given: dict[str, Any] = {
        "path": "c.yaml",
        "agent": AgentSpec(),
        "tasks": (Task(("one",)),),
        "scenarios": (CALM,),
        "invariants": rules or (rule(),),
        "cell_rules": tuple(r.id for r in rules or (rule(),)) if cell else (),
    }
    return Spec(**(given | more))


def met(index: int = 0, plane: str = "tool", effect: Any = "met", note: str = "") -> FaultMet:
    return FaultMet(index, plane, "t", "error", 1, effect, note=note)


def verdict(trial: Trial, outcome: str, invariant: str = "r", reason: str = "") -> Verdict:
    return Verdict(trial.id, invariant, WORDS[outcome], 1.0 if outcome == "p" else 0.0, reason or f"because {outcome}")


def run(made: Spec, outcomes: str, **seen: Any) -> list[Cell]:
    """Feeds one letter a trial in plan order; the cells at the end."""
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial, outcome in zip(planned.trials, outcomes, strict=True):
        tally.add(trial, Observation(trial.id, **seen), verdict(trial, outcome, trial.invariant))
    return list(tally.iter_cells())


def replicas(outcomes: str, how: Aggregation, **more: Any) -> Cell:
    made = spec(replicas=len(outcomes), scoring=Scoring(replica_aggregation=how), **more)
    return run(made, outcomes)[0]


# -- when a cell is decided -----------------------------------------------------------------------
def test_a_cell_comes_when_its_last_expected_verdict_arrived():
    made = spec(replicas=2, tasks=(Task(("one",)), Task(("two",))))
    planned = build_plan(made)
    tally = Tally(made, planned)
    came = [tally.add(t, Observation(t.id), verdict(t, "p")) for t in planned.trials]
    assert came[:3] == [None] * 3
    assert came[3] == next(iter(tally.iter_cells()))
    assert came[3] is not None
    assert (came[3].outcome, came[3].passes, came[3].reason) == ("pass", 4, "")


def test_every_way_in_which_a_cell_failed_is_kept_with_its_trials_in_any_order():
    made = spec(tasks=tuple(Task((word,)) for word in "abcde"))
    planned = build_plan(made)
    ways = [("missing", ("total",), ""), ("missing", ("tax",), ""), ("late", (), ""), ("missing", ("total",), "")]
    ways += [("no-answer", (), "raised: KeyError")]
    failing = [
        replace(verdict(trial, "f", reason=f"reason {n}"), code=code, key=key, ended_by=ended)
        for n, (trial, (code, key, ended)) in enumerate(zip(planned.trials, ways, strict=True))
    ]
    for order in (failing, failing[::-1]):
        tally = Tally(made, planned)
        by_id = {trial.id: trial for trial in planned.trials}
        for one in order:
            tally.add(by_id[one.trial], Observation(one.trial), one)
        (cell,) = tally.iter_cells()
        assert (cell.code, cell.key, cell.reason) == ("missing", ("total",), "reason 0")
        assert [(one.code, one.key, one.ending, one.trials) for one in cell.causes] == [
            ("missing", ("total",), "", 2),
            ("missing", ("tax",), "", 1),
            ("late", (), "", 1),
            ("no-answer", (), "raised: KeyError", 1),
        ]


def test_a_cell_that_failed_in_one_way_keeps_no_list():
    (cell,) = run(spec(replicas=3), "fff")
    assert (cell.fails, cell.causes) == (3, ())


def test_a_verdict_too_many_is_refused():
    made = spec()
    planned = build_plan(made)
    tally = Tally(made, planned)
    trial = planned.trials[0]
    tally.add(trial, Observation(trial.id), verdict(trial, "p"))
    with pytest.raises(HarnessError) as raised:
        tally.add(trial, Observation(trial.id), verdict(trial, "f"))
    assert raised.value.code == "bug"


def test_shared_trials_fill_the_cells_of_every_rule_and_count_once():
    made = spec(rule("a"), rule("b"), cell=False)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial in planned.trials:
        for served, outcome in zip(planned.get_rules(trial), "pf", strict=True):
            tally.add(trial, Observation(trial.id), verdict(trial, outcome, served.id))
    assert [c.outcome for c in tally.iter_cells()] == ["pass", "fail"]
    assert tally.trials == 1


def test_cells_come_in_plan_order_with_the_not_applicable_ones():
    made = spec(rule("a"), rule("b", when="no_chaos"), scenarios=(CALM, TOOL))
    cells = run(made, "ppp", ledger=(met(),))
    assert [(c.invariant, c.scenario, c.outcome) for c in cells] == [
        ("a", "calm", "pass"),
        ("b", "calm", "pass"),
        ("a", "tool-down", "pass"),
        ("b", "tool-down", "n/a"),
    ]
    assert cells[3].code == "not-applicable"


def test_unfinished_cells_are_shown_as_far_as_they_got(golden: Golden):
    made = spec(rule("a"), rule("b"), rule("c"), replicas=2)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial, outcome in zip(planned.trials, "fp", strict=False):
        tally.add(trial, Observation(trial.id), verdict(trial, outcome, trial.invariant))
    trial = planned.trials[2]
    tally.add(trial, Observation(trial.id), verdict(trial, "p", "b"))
    golden([(c.outcome, c.reason) for c in tally.iter_cells()])


def test_a_cell_for_which_nothing_was_asked_is_not_a_pass():
    made = spec(tasks=())
    assert [(c.outcome, c.reason) for c in Tally(made, build_plan(made)).iter_cells()] == [("unproven", "no trial ran")]


def test_params_make_cells_of_their_own():
    made = spec(params=({"m": 1}, {"m": 2}))
    cells = run(made, "pf")
    assert [(c.params, c.outcome) for c in cells] == [({"m": 1}, "pass"), ({"m": 2}, "fail")]


def test_a_single_trial_selected_decides_its_cell_alone():
    made = spec(replicas=5, scoring=Scoring(replica_aggregation=Aggregation("at_least", 4)))
    wanted = build_plan(made).trials[3]
    planned = build_plan(made, Select(trials=(wanted.id,)))
    tally = Tally(made, planned)
    cell = tally.add(wanted, Observation(wanted.id), verdict(wanted, "f"))
    assert cell is not None
    assert cell.outcome == "fail"
    assert list(tally.iter_cells()) == [cell]


# -- combining ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("outcomes", "how", "outcome"),
    [
        ("ppf", Aggregation("all"), "fail"),
        ("ppf", Aggregation("majority"), "pass"),
        ("ffp", Aggregation("any"), "pass"),
        ("ppppf", Aggregation("rate", 0.8), "pass"),
        ("pppff", Aggregation("rate", 0.8), "fail"),
        ("ppff", Aggregation("at_least", 2), "pass"),
        ("pppe", Aggregation("at_least", 3), "pass"),
        ("ppee", Aggregation("at_least", 3), "error"),
        ("ppuu", Aggregation("at_least", 3), "unproven"),
    ],
)
def test_replicas_combine_by_replica_aggregation(outcomes, how, outcome):
    assert replicas(outcomes, how).outcome == outcome


def test_an_invariant_may_carry_its_own_aggregation():
    own = rule("r", replica_aggregation=Aggregation("any"))
    made = spec(own, replicas=2, scoring=Scoring(replica_aggregation=Aggregation("all")))
    assert run(made, "pf")[0].outcome == "pass"


@pytest.mark.parametrize(
    ("outcomes", "outcome"), [("pp", "pass"), ("pf", "fail"), ("fe", "fail"), ("pe", "error"), ("eu", "error")]
)
def test_a_cell_passes_if_every_prompt_passed(outcomes, outcome):
    assert run(spec(tasks=(Task(("one",)), Task(("two",)))), outcomes)[0].outcome == outcome


def test_counts_and_rate_are_of_verdicts():
    cell = replicas("ppfeu", Aggregation("any"))
    assert (cell.passes, cell.fails, cell.errors, cell.unproven) == (2, 1, 1, 1)
    assert cell.rate == compute_wilson(2, 3)
    assert replicas("eu", Aggregation("all")).rate is None


def test_flaky_means_replicas_of_one_prompt_disagree():
    assert replicas("pf", Aggregation("any")).flaky
    assert not replicas("pe", Aggregation("any")).flaky
    assert not run(spec(tasks=(Task(("one",)), Task(("two",)))), "pf")[0].flaky


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize(("outcomes", "first"), [("eff", 1), ("fff", 0)])
def test_the_reason_is_that_of_the_first_verdict_in_plan_order_whatever_comes_first(order, outcomes, first):
    made = spec(replicas=3)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for i in order:
        trial = planned.trials[i]
        tally.add(trial, Observation(trial.id), verdict(trial, outcomes[i], reason=f"reason {i}"))
    assert [c.reason for c in tally.iter_cells()] == [f"reason {first}"]


# -- the fault must be met ------------------------------------------------------------------------
def test_a_sequential_cell_passes_when_a_later_replica_met_its_fault():
    made = spec(rule(replica_aggregation=Aggregation("any")), scenarios=(TOOL,), replicas=2)
    planned = build_plan(made, sequential=True)
    tally = Tally(made, planned)
    first, second = planned.trials
    assert tally.add(first, Observation(first.id), verdict(first, "p")) is not None
    assert [cell.outcome for cell in tally.iter_cells()] == ["unproven"]
    assert tally.add(second, Observation(second.id, ledger=(met(),)), verdict(second, "p")) is None
    assert [cell.outcome for cell in tally.iter_cells()] == ["pass"]


def test_a_chaos_cell_that_passed_without_its_fault_met_is_unproven():
    cell = run(spec(scenarios=(TOOL,)), "p")[0]
    assert (cell.outcome, cell.met, cell.chaos) == ("unproven", False, True)
    assert (cell.code, cell.key) == ("fault-not-called", ("market_data_api",))
    assert run(spec(scenarios=(TOOL,)), "p", ledger=(met(),))[0].outcome == "pass"


def test_a_violation_still_fails_without_the_fault_met():
    assert run(spec(scenarios=(TOOL,)), "f")[0].outcome == "fail"


def test_one_trial_that_met_it_is_enough():
    made = spec(scenarios=(TOOL,), replicas=2)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial, ledger in zip(planned.trials, ((), (met(),)), strict=True):
        tally.add(trial, Observation(trial.id, ledger=ledger), verdict(trial, "p"))
    assert next(tally.iter_cells()).outcome == "pass"


@pytest.mark.parametrize(
    ("when", "index", "outcome"),
    [
        ("tool_faults_active", 0, "unproven"),
        ("tool_faults_active", 1, "pass"),
        ("llm_faults_active", 0, "pass"),
        ("llm_faults_active", 1, "unproven"),
        ("always", 0, "pass"),
        ("any_chaos_active", 1, "pass"),
    ],
)
def test_tool_rules_need_a_tool_fault_met_llm_rules_an_llm_fault_others_any(when, index, outcome):
    cell = run(spec(rule(when=when), scenarios=(MIXED,)), "p", ledger=(met(index, "answer"),))[0]
    assert cell.outcome == outcome


def test_simulated_faults_count_by_the_plane_of_their_injection_and_are_marked():
    seen = {"ledger": (met(1, "answer"),), "simulated": True}
    cell = run(spec(rule(when="tool_faults_active"), scenarios=(MIXED,)), "p", **seen)[0]
    assert (cell.outcome, cell.simulated) == ("pass", True)


def test_an_index_that_no_injection_has_meets_nothing():
    assert run(spec(scenarios=(TOOL,)), "p", ledger=(met(9),))[0].outcome == "unproven"


MODEL = Scenario("model", (Injection("llm", "gpt-4o", "timeout"),))
AT_URL = Scenario("url", (Injection("tool", "x", "error", match_url="api.example.com/v1/*"),))
NETWORK = Scenario("net", (Injection("http", "https://b/*", "latency"),))
MATCHED = Scenario("matched", (Injection("llm", "*", "timeout", schedule=Schedule(match={"tools": "write"})),))
MCP = Scenario("mcp", (Injection("mcp", "read*", "hang"),))
POISON = Scenario("poison", (Injection("mcp", "read*", "tool_poisoning"),))


@pytest.mark.parametrize(
    ("scenario", "seen"),
    [
        (LLM, {}),
        (MIXED, {}),
        (TOOL, {"calls": {"other": 1}}),
        (TOOL, {"calls": {"mcp:other": 1}}),
        (TOOL, {"calls": {"mcp:market_data_api": 1}}),
        (MODEL, {"calls": {"llm:gpt-5": 1}}),
        (AT_URL, {}),
        (
            AT_URL,
            {"calls": {"http:https://a/x?key=1": 1, "http:http://b/y": 2, "http:http://c/": 1, "http:http://d/": 1}},
        ),
        (AT_URL, {"calls": {"http:https://api.example.com/v1/x": 1}}),
        (NETWORK, {"calls": {"llm:m": 1, "http:https://a/x": 1}}),
        (MCP, {"calls": {"mcp:list": 1}}),
        (POISON, {"calls": {"mcp:read": 1}}),
        (TOOL, {"calls": {"market_data_api": 2}}),
        (LLM, {"calls": {"search": 2}}),
        (LLM, {"calls": {"llm:ask": 2}}),
        (MATCHED, {"calls": {"llm:m": 2}, "unmatched": {0: 'tools: ["bash"]'}}),
        (TOOL, {"ledger": (met(effect="no_effect"),)}),
        (TOOL, {"ledger": (met(effect="no_effect", note="no text"),)}),
        (TOOL, {"ledger": (met(effect="no_effect", note="no text"), met(effect="erased"))}),
        (Scenario("i", (Injection("context", "input", "overflow"),)), {}),
        (Scenario("i", (Injection("context", "*", "indirect_injection"),)), {}),
    ],
)
def test_the_reason_says_why_the_fault_was_never_met(scenario, seen, golden: Golden):
    golden(run(spec(scenarios=(scenario,)), "p", **seen)[0].reason)


def test_a_fault_of_ours_that_broke_is_an_error_with_its_name():
    why = "fault empty broke: UnsupportedShape: the model function returned builtins.int"
    (cell,) = run(spec(scenarios=(LLM,)), "p", error=why, error_code="fault-broken", calls={"llm:m": 1})
    assert (cell.outcome, cell.reason) == ("error", why)
    (cell,) = run(spec(scenarios=(LLM,)), "p", error="the provider is down", calls={"llm:m": 1})
    assert cell.outcome == "unproven"


def test_a_scenario_is_vacuous_if_no_trial_of_it_met_any_of_its_faults():
    made = spec(rule("a"), rule("b", when="llm_faults_active"), scenarios=(CALM, TOOL, LLM, MIXED))
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial in planned.trials:
        ledger = (met(1),) if trial.scenario.name == "mixed" else ()
        tally.add(trial, Observation(trial.id, ledger=ledger), verdict(trial, "f", trial.invariant))
    assert tally.find_vacuous_scenarios() == ("tool-down", "llm-degraded")


def test_a_scenario_that_no_rule_is_judged_in_is_vacuous():
    made = spec(rule(when="no_chaos"), scenarios=(CALM, TOOL))
    assert Tally(made, build_plan(made)).find_vacuous_scenarios() == ("tool-down",)


def test_a_scenario_that_was_not_run_yet_is_not_called_vacuous():
    made = spec(rule(when="always"), scenarios=(CALM, TOOL))
    assert Tally(made, build_plan(made)).find_vacuous_scenarios() == ()


def test_a_scenario_that_a_budget_left_out_whole_is_vacuous():
    made = spec(rule("a", when="always"), rule("b", when="no_chaos"), scenarios=(CALM, TOOL, LLM))
    assert Tally(made, build_plan(made)).find_vacuous_scenarios(unasked=True) == ("tool-down", "llm-degraded")
    one = Select(scenarios=(TOOL.name,))
    for select in (one, Select(trials=(build_plan(made, one).trials[0].id,))):
        assert Tally(made, build_plan(made, select)).find_vacuous_scenarios(unasked=True) == ("tool-down",)
    assert Tally(made, build_plan(made, Select(invariants=("b",)))).find_vacuous_scenarios(unasked=True) == ()


def test_a_selection_of_rules_does_not_make_a_scenario_vacuous():
    made = spec(rule("calm", when="no_chaos"), rule("any"), scenarios=(CALM, TOOL))
    assert Tally(made, build_plan(made, Select(invariants=("calm",)))).find_vacuous_scenarios() == ()


# -- marks ----------------------------------------------------------------------------------------
def test_a_rule_that_fails_in_calm_is_marked_on_its_chaos_cells_at_the_end():
    made = spec(rule("a"), rule("b"), scenarios=(TOOL, CALM), params=({"m": 1}, {"m": 2}))
    cells = run(made, "ffff" + "fppf", ledger=(met(),))
    marked = [(c.invariant, c.params["m"]) for c in cells if c.fails_in_calm]
    assert marked == [("a", 1), ("b", 2)]
    assert all(c.chaos for c in cells if c.fails_in_calm)


def test_concurrent_calls_are_marked():
    assert run(spec(), "p", concurrent=True)[0].concurrent
    assert not run(spec(), "p")[0].concurrent


def test_a_cell_carries_its_rules_severity_and_weight():
    cell = run(spec(rule(severity="high", gate=True)), "p")[0]
    assert (cell.severity, cell.weight, cell.critical) == ("high", 3.0, True)


def test_what_is_kept_of_a_finished_cell_is_small():
    made = spec(scenarios=tuple(Scenario(f"s{i}") for i in range(50)), replicas=3)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial in planned.trials:
        tally.add(trial, Observation(trial.id), verdict(trial, "p"))
    assert not tally._open
    kept = [d for d in tally._done if d is not None]
    assert len(kept) == 50
    assert len({id(d.tries) for d in kept}) == 1
    assert all(sys.getsizeof(d) + sys.getsizeof(d.why.reason) <= 300 for d in kept)


def test_trials_that_ended_badly_and_failed_no_rule_are_counted():
    made = spec(replicas=4)
    planned = build_plan(made)
    tally = Tally(made, planned)
    endings = ("timeout", "timeout", "answered", "crashed")
    for trial, ending, outcome in zip(planned.trials, endings, "pfpp", strict=True):
        tally.add_trial(trial, Observation(trial.id, (Turn("hi", "x", ending=ending),)), [verdict(trial, outcome)])
    assert tally.endings.unjudged == {"timeout": 1, "crashed": 1}


@pytest.mark.parametrize(("rule_on_endings", "judged"), [(Invariant("r", "completes"), {"timeout"}), (rule(), set())])
def test_a_rule_on_endings_judges_those_by_which_it_fails(rule_on_endings: Invariant, judged: set[str]):
    made = spec(rule_on_endings, replicas=3)
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial, ending, outcome in zip(planned.trials, ("timeout", "answered", "crashed"), "fpu", strict=True):
        tally.add_trial(trial, Observation(trial.id, (Turn("hi", "x", ending=ending),)), [verdict(trial, outcome)])
    assert tally.endings.judged == judged


def test_what_the_preflight_used_is_not_in_the_totals():
    made = spec()
    planned = build_plan(made)
    tally = Tally(made, planned)
    paid = TraceEvent(0.0, "llm_call", "m", "llm", cost=Cost("m", 10, 5, 0.5))
    (trial,) = planned.trials
    tally.note_trial(replace(trial, kind="control"), Observation(trial.id, trace=(paid,)))
    assert tally.spending.build_result() is None
    assert tally.control_spending.usd == 0.5
    tally.add_trial(trial, Observation(trial.id, trace=(paid, paid)), [verdict(trial, "p")])
    assert tally.spending.build_result().calls == 2


def test_the_reason_is_of_a_prompt_that_failed_and_not_of_one_that_held() -> None:
    how = Scoring(replica_aggregation=Aggregation("majority"))
    made = spec(replicas=3, scoring=how, tasks=(Task(("held",)), Task(("bad",))))
    planned = build_plan(made)
    tally = Tally(made, planned)
    for trial in planned.trials:
        failed = trial.task.prompt == "bad" or trial.replica == 1
        tally.add(trial, Observation(trial.id), verdict(trial, "f" if failed else "p", reason=trial.task.prompt))
    (cell,) = tally.iter_cells()
    assert (cell.outcome, cell.fails, cell.reason) == ("fail", 4, "bad")
    assert tally.get_deciding_prompts(0) == 0b10
