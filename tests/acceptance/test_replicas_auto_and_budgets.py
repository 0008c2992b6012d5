"""`--replicas auto` stops each cell once it is decided; budgets end a run cleanly, and say what was not run."""

from __future__ import annotations

import pytest
from cli import CALM, DOWN, MakeProject, contract, python, rule, tool_fault

FLAKY = """
import os
def ask(prompt):
    n = int(os.environ["HOLDFAST_REPLICA"])
    if prompt == "bad":
        return "wrong" if n == 2 else "good"
    if prompt == "half":
        return "good" if n % 2 else "wrong"
    return "good"
"""
AGENT = {"type": "python", "endpoint": "agent:ask"}


def spec(*prompts: str, how=None, isolation="scenario", **top):
    rules = [rule("good", value="good")]
    if how is not None:
        top["scoring"] = {"replica_aggregation": how}
    return contract(rules, [CALM], prompts=prompts, agent=AGENT, isolation=isolation, **top)


def asked(made, run="0001"):
    found: dict[str, int] = {}
    for trial in made.contract_trials(run):
        prompt = trial["task"]["turns"][0]
        found[prompt] = found.get(prompt, 0) + 1
    return found


def decided(result):
    return {name: value for name, value in result.cell.items() if name != "trials"}


# "`all` is decided by the first failure, else passes at the limit and says so"
def test_all_stops_at_the_first_failure_else_at_the_limit(project: MakeProject) -> None:
    made = project(spec("bad", "fine"), FLAKY)
    result = made.run("--replicas", "auto", "--max-replicas", "6")
    assert result.code == 1
    assert asked(made) == {"bad": 3, "fine": 6}
    held = project(spec("fine"), FLAKY, name="held")
    passed = held.run("--replicas", "auto", "--max-replicas", "6")
    assert (passed.code, passed.cell["outcome"]) == (0, "pass")
    assert passed.cell["code"] == "passed-at-limit"
    assert passed.cell["passes"] == 6


def test_the_limit_is_20_and_a_majority_is_decided_earlier(project: MakeProject) -> None:
    made = project(spec("fine", "half", how="majority"), FLAKY)
    result = made.run("--replicas", "auto")
    assert asked(made) == {"fine": 4, "half": 20}
    assert result.cell["outcome"] == "fail"  # 10 of 20 is no majority
    assert result.part["pass_hat"] == {}


@pytest.mark.parametrize("isolation", ["scenario", "cell"])
def test_the_same_is_asked_however_many_run_at_once(project: MakeProject, isolation: str) -> None:
    text = spec("bad", "half", "fine", how={"rate": 0.8}, isolation=isolation)
    one, many = project(text, FLAKY, name="one"), project(text, FLAKY, name="many")
    alone, together = one.run("--replicas", "auto", "-j", "1"), many.run("--replicas", "auto", "-j", "4")
    assert asked(one) == asked(many)
    assert decided(alone) == decided(together)


def test_report_judge_and_resume_see_the_same_as_the_run(project: MakeProject) -> None:
    made = project(spec("bad", "half", "fine", how={"rate": 0.6}), FLAKY)
    first = made.run("--replicas", "auto", "--max-trials", "4")
    assert (first.cell["outcome"], first.code) == ("unproven", 5)
    ended = made.run("--resume", "0001")
    whole = project(spec("bad", "half", "fine", how={"rate": 0.6}), FLAKY, name="whole")
    assert decided(ended) == decided(whole.run("--replicas", "auto"))
    shown = made.cli("report", "0001", "--json")
    judged = made.cli("judge", "0001", "--json")
    assert shown.cell["outcome"] == judged.cell["outcome"] == ended.cell["outcome"]
    assert (shown.cell["passes"], shown.cell["fails"]) == (ended.cell["passes"], ended.cell["fails"])


def test_a_cell_whose_fault_was_not_met_is_asked_on(project: MakeProject) -> None:
    matrix = [tool_fault(probability=0.02)]
    rules = [rule("says", value="o", replica_aggregation="any")]
    made = project(contract(rules, matrix, agent=python(), isolation="cell"))
    result = made.run("--replicas", "auto", "--max-replicas", "5", "--allow-vacuous")
    assert result.cell["outcome"] == "unproven"
    assert len(made.contract_trials()) == 5
    often = project(contract(rules, [tool_fault()], agent=python(), isolation="cell"), name="often")
    assert often.run("--replicas", "auto").cell["outcome"] == "pass"
    assert len(often.contract_trials()) == 1


def test_max_replicas_alone_is_refused(project: MakeProject) -> None:
    result = project(spec("fine"), FLAKY).run("--max-replicas", "5")
    assert result.code == 4
    assert "--replicas auto" in result.out


# "what was not asked leaves its cell unproven; the exit follows from the rest"
def test_a_budget_of_trials_leaves_the_rest_unproven_and_can_be_taken_up(project: MakeProject) -> None:
    rules = [rule("a", value="good"), rule("b", value="good"), rule("c", value="good")]
    made = project(contract(rules, [CALM], prompts=("fine",), agent=AGENT, isolation="cell"), FLAKY)
    result = made.run("--max-trials", "2")
    assert result.code == 0
    assert sorted(result.outcomes.values()) == ["pass", "pass", "unproven"]
    assert result.part["unasked"] == 1
    shown = made.cli("report", "0001").out
    assert "--max-trials 2: 2 trials ran, 1 of 3 " in shown
    assert "--resume 0001" in shown
    more = made.run("--resume", "0001", "--max-trials", "3")
    assert set(more.outcomes.values()) == {"pass"}
    assert "stopped by" not in made.cli("report", "0001").out


def test_a_budget_that_is_just_enough_ends_nothing(project: MakeProject) -> None:
    result = project(spec("fine", "bad"), FLAKY).run("--max-trials", "2")
    assert (result.code, result.part["unasked"]) == (0, 0)


def test_what_was_asked_decides_even_if_a_budget_ended_the_run(project: MakeProject) -> None:
    rules = [rule("no", value="never"), rule("b", value="good")]
    made = project(contract(rules, [CALM], prompts=("fine",), agent=AGENT, isolation="cell"), FLAKY)
    assert made.run("--max-trials", "1").code == 1


def test_a_time_is_seconds_or_has_a_unit(project: MakeProject) -> None:
    made = project(spec("fine"), FLAKY)
    assert made.run("--max-time", "1h").code == 0
    assert made.run("--max-time", "0").code == 4
    assert made.run("--max-time", "soon").code == 4
    assert made.run("--max-time", "90").code == 0


def test_a_cost_that_cannot_be_seen_is_said(project: MakeProject) -> None:
    result = project(spec("fine"), FLAKY).run("--max-cost", "1.5")
    assert result.code == 0
    assert "warning: --max-cost: " in result.err
    assert project(spec("fine"), FLAKY, name="nan").run("--max-cost", "nan").code == 4


def test_cases_stop_too(project: MakeProject) -> None:
    text = {
        "version": "1.0",
        "id": "mail",
        "agent": AGENT,
        "task": {"prompt": "bad"},
        "invariants": {"good": {"description": "d", "check": {"type": "contains", "value": "good"}}},
    }
    made = project(text, FLAKY)
    result = made.cli("run", "--json", "--no-report", "--replicas", "auto")
    assert result.code == 1
    assert len(made.contract_trials()) == 3
    majority = project({**text, "scoring": {"replica_aggregation": "majority"}}, FLAKY, name="majority")
    held = majority.cli("run", "--json", "--no-report", "--replicas", "auto")
    assert held.code == 0, held.out
    assert len(majority.contract_trials()) == 6


def test_a_chaos_scenario_that_a_budget_left_out_is_not_proven(project: MakeProject) -> None:
    made = project(contract([rule("cites", value="source")], [CALM, DOWN], prompts=("one",)))
    result = made.run("--max-trials", "1")
    assert (result.code, result.part["vacuous"]) == (5, ["down"])
    assert made.run("--max-trials", "1", "--allow-vacuous").code == 0
    assert made.run("--max-trials", "1", "--scenario", "calm").code == 0
    assert made.run("--max-trials", "1", "--shard", "1/1").code == 0
    ended = made.cli("ci", "--max-trials", "1")
    assert ended.code == 5
    assert "--max-trials 1: 1 trial ran, 1 of 2 " in ended.out
    assert "stopped by" in made.cli("ci", "--max-trials", "1", "--json", "--no-report").json["notes"][0]
