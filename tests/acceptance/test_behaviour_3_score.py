"""behaviour.md 3: the resilience score, its minimum, its intervals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, contract, python, rule, tool_fault

NO_TOOLS = {"type": "python", "endpoint": "agent:ask"}
ECHO = "def ask(prompt):\n    return 'good ' + prompt\n"


def severities(**held: bool) -> list[dict[str, Any]]:
    """A rule of each severity that holds or does not."""
    return [rule(name, value="good" if holds else "bad", severity=name) for name, holds in held.items()]


# "Resilience = Σ w·passed / Σ w·(passed+failed) × 100, two decimals, over cells";
# "critical 3, high 2, medium 1, low 1"
@pytest.mark.parametrize(
    ("held", "score"),
    [
        ({"critical": True, "high": True, "medium": True, "low": True}, 100.0),
        ({"critical": True, "high": False, "medium": False, "low": False}, 42.86),
        ({"critical": False, "high": True, "medium": True, "low": True}, 57.14),
        ({"critical": True, "high": True, "medium": False, "low": True}, 85.71),
        ({"high": True, "medium": False}, 66.67),
        ({"medium": True, "low": False}, 50.0),
        ({"high": False, "low": False}, 0.0),
    ],
)
def test_3_the_formula_with_two_decimals(project: MakeProject, held: dict[str, bool], score: float) -> None:
    made = project(contract(severities(**held), agent=NO_TOOLS, isolation="scenario"), ECHO)
    shown = made.show("--no-report", "-o", "r.json")
    assert json.loads(made.read("r.json"))["score"] == score
    assert f"resilience {score:.2f}" in shown.out


# "error, unproven and n/a are outside, and `judged n of m cells` is always printed"
MIXED = [
    rule("passes", value="source"),
    rule("fails", value="unicorn"),
    rule("absent", value="source", when="llm_faults_active"),
    rule("unproven", value="source", when="any_chaos_active"),
]


def mixed() -> dict[str, Any]:
    return contract(MIXED, [CALM, tool_fault(on_call=7)], isolation="scenario")


def test_3_unproven_and_na_are_outside_the_score(project: MakeProject) -> None:
    result = project(mixed()).run()
    assert result.json["counts"] == {"pass": 1, "fail": 2, "error": 0, "unproven": 2, "n/a": 3}
    assert result.json["score"] == 33.33
    assert (result.part["judged"], result.part["total"]) == (3, 5)


@pytest.mark.parametrize("options", [(), ("-q",), ("-v",)])
def test_3_judged_n_of_m_cells_is_always_printed(project: MakeProject, options: tuple[str, ...]) -> None:
    assert "3 of 5 cells judged (3 n/a)" in project(mixed()).show("--no-report", *options).out


# "an empty selection is not 100 %"
def test_3_an_empty_selection_is_not_100(project: MakeProject) -> None:
    rules = [
        rule("calm-only", value="source", when="no_chaos"),
        rule("chaos-only", value="no", when="any_chaos_active"),
    ]
    made = project(contract(rules, [CALM, DOWN]))
    for args in (
        ("--scenario", "nowhere"),
        ("--invariant", "nothing"),
        ("--scenario", "down", "--invariant", "calm-only"),
        ("--trial", "ffffffff"),
    ):
        result = made.run(*args)
        assert (result.code, result.json["score"]) == (4, None), args
    assert made.run("--scenario", "calm").code == 0


def test_3_a_matrix_in_which_no_rule_applies_is_not_100(project: MakeProject) -> None:
    result = project(contract([rule("chaos-only", value="source", when="any_chaos_active")], [CALM])).run()
    assert result.code == 5
    assert result.json["score"] is None
    assert result.json["passed"] is False


# "FAIL if any critical (or gate) cell failed, whatever the number."
@pytest.mark.parametrize("mark", [{"severity": "critical"}, {"gate": True}])
def test_3_a_critical_failure_fails_whatever_the_number(project: MakeProject, mark: dict[str, Any]) -> None:
    rules = [rule("bad", value="bad", **mark), *(rule(f"r{i}", value="good", severity="critical") for i in range(9))]
    spec = contract(rules, agent=NO_TOOLS, isolation="scenario", scoring={"min_score": 10})
    made = project(spec, ECHO)
    result = made.run("--min-score", "0")
    assert result.json["score"] == 90.0
    assert (result.code, result.json["passed"]) == (1, False)
    assert result.part["critical_failed"] == ["bad in calm"]
    assert "1 critical cell failed" in made.show("--no-report").out


# "`scoring.min_score` / `--min-score N` (0-100) is the tolerance for the others: they pass while score >= N, and
#  are named."
def test_3_min_score_tolerates_and_names_the_others(project: MakeProject) -> None:
    spec = contract(severities(high=True, low=False), agent=NO_TOOLS, scoring={"min_score": 60})
    made = project(spec, ECHO)
    result = made.run()
    assert (result.code, result.json["passed"], result.json["score"]) == (0, True, 66.67)
    assert result.part["tolerated"] == ["low in calm"]
    shown = made.show("--no-report")
    assert ": low in calm\n" in shown.out
    assert "PASS" in shown.out


def test_3_the_minimum_is_compared_with_the_score_as_it_is_shown(project: MakeProject) -> None:
    made = project(contract(severities(high=True, low=False), agent=NO_TOOLS), ECHO)
    made.run()
    wanted = {"66": 0, "66.66": 0, "66.67": 0, "66.68": 1, "67": 1, "0": 0, "100": 1}
    assert {least: made.cli("judge", "1", "--min-score", least).code for least in wanted} == wanted


def test_3_min_score_on_the_command_line_overrides_the_file(project: MakeProject) -> None:
    spec = contract(severities(high=True, low=False), agent=NO_TOOLS, scoring={"min_score": 90})
    made = project(spec, ECHO)
    assert made.run().code == 1
    assert made.run("--min-score", "50").code == 0
    assert "below the minimum 90" in made.show("--no-report").out


@pytest.mark.parametrize("wrong", ["101", "-1", "many"])
def test_3_min_score_outside_0_to_100_is_usage(project: MakeProject, wrong: str) -> None:
    assert project(contract(severities(high=True), agent=NO_TOOLS), ECHO).run("--min-score", wrong).code == 4


# "one replica says `1 replica: try --replicas 5`"
def test_3_one_replica_says_that_it_cannot_tell_luck_from_skill(project: MakeProject) -> None:
    made = project(contract(severities(high=True), agent=NO_TOOLS), ECHO)
    line = "1 replica: try --replicas 5"
    assert line in made.show("--no-report").out
    assert line not in made.show("--no-report", "--replicas", "2").out


FEW, ENOUGH = tuple(f"p{n}" for n in range(4)), tuple(f"p{n}" for n in range(5))


@pytest.mark.parametrize("prompts", [FEW, ENOUGH])
def test_what_chaos_costs_is_of_the_rules_that_count_in_both_and_says_so(
    project: MakeProject, prompts: tuple[str, ...]
) -> None:
    """A rule for chaos alone fails: that is no cost of chaos to the others."""
    rules = [
        rule("answers", "completes"),
        rule("admits", value="cannot", when="tool_faults_active", severity="critical"),
        rule("sure", value="source", when="no_chaos"),
    ]
    made = project(contract(rules, [CALM, DOWN], prompts=prompts, agent=python(isolation="inline")))
    told = made.run("--no-preflight")
    found = told.json["parts"]["contract"]
    assert (found["score"], found["calm"], found["chaos"]) == (50.0, 100.0, 25.0)
    assert (found["paired"]["points"], found["paired"]["rules"]) == (0.0, 1)
    assert found["interval"]["low"] < found["interval"]["high"]
    shown = made.cli("show", "latest")
    enough = prompts is ENOUGH
    view = made.viewed("runs/0001")
    assert ("95 %" in shown.out) == enough
    cost = "chaos costs no points on the same 1 of 3 rules, which apply in both, and prompts"
    assert [cost in text for text in (shown.out, view["paired"])] == [enough] * 2
    assert (bool(view["interval"]), bool(view["paired"]), view["low"] is not None) == (enough,) * 3
    assert made.viewed("runs")["runs"][0]["low"] == view["low"]


def test_where_no_rule_counts_in_both_there_is_nothing_to_compare(project: MakeProject) -> None:
    rules = [rule("a", "completes", when="no_chaos"), rule("b", "completes", when="any_chaos_active")]
    found = project(contract(rules, [CALM, DOWN], agent=python(isolation="inline"))).run("--no-preflight").part
    assert (found["score"], found["paired"]) == (100.0, None)
