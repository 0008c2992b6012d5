"""Faults on a launched agent's own calls: tools by name in its model traffic, attacks, and the same luck every time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli import CALM, MakeProject, Project, contract, facts, rule
from plane_agents import ASKS, ECHO, MARKET, SCRIPTED, TRADES, command, equip, ledger, quick, server, trace

PRICE = rule("price", value="the price is 12.5")
HONEST = rule("honest", "contains_any", values=["12.5", "unavailable"])


def faulty(mode: str, **more: Any) -> dict[str, Any]:
    return {"name": mode, "tool_faults": [{"tool": "market_data_api", "mode": mode, **more}]}


def trading(project: MakeProject, *matrix: dict[str, Any], script: Any = MARKET, **more: Any) -> Project:
    rules = more.pop("rules", [PRICE])
    spec = contract(rules, list(matrix), agent=more.pop("agent", command()), models=SCRIPTED, **more)
    return equip(project(spec, TRADES), script)


# -- tools inside the agent ------------------------------------------------------------------------
def test_document_000s_tool_error_works_on_an_agent_that_holdfast_starts(project: MakeProject) -> None:
    found = trading(project, CALM, faulty("error", error_code=503, message="Service Unavailable"))
    result = quick(found)
    assert result.outcomes == {("price", "calm"): "pass", ("price", "error"): "fail"}
    trial = result.cells[("price", "error")]["trials"][0]
    assert trial["answer"].strip() == "data unavailable"
    (met,) = trial["faults"]
    assert (met["plane"], met["target"], met["call"]) == ("tool_result", "market_data_api", 1)
    assert met["ran"] is True
    assert len(found.lines("ran.log")) == 3  # in the preflight and in both trials


ASKS_AGAIN = {
    "replies": [
        {"match": {"tool": "market_data_api", "result": "*price*"}, "text": "the price is {{ result.price }}"},
        {"tool_calls": [{"name": "market_data_api", "arguments": {"symbol": "ACME"}}], "times": 2},
        {"text": "data unavailable"},
    ]
}
"""A model that rightly asks again after a failure."""


def test_a_retry_after_a_fault_that_came_too_late_to_stop_the_tool_is_not_held_against_the_agent(
    project: MakeProject,
) -> None:
    rules = [PRICE, rule("once", "side_effect_once", tool="market_data_api")]
    weather = [CALM, faulty("error", times=1), faulty("lost_reply", times=1), faulty("wrong_value", times=1)]
    result = quick(trading(project, *weather, script=ASKS_AGAIN, rules=rules))
    assert result.code == 1
    assert {key: outcome for key, outcome in result.outcomes.items() if key[0] == "once"} == {
        ("once", "calm"): "pass",
        ("once", "error"): "unproven",
        ("once", "lost_reply"): "fail",  # its very point: the tool ran, and asking again does the deed twice
        ("once", "wrong_value"): "pass",
    }
    assert result.outcomes["price", "error"] == "pass"
    assert "agent.tools" in result.cells["once", "error"]["reason"]


@pytest.mark.parametrize("mode", ["timeout", "slow", "phantom_success"])
def test_what_cannot_be_met_in_model_traffic_is_refused_with_the_way_out(project: MakeProject, mode: str) -> None:
    result = trading(project, faulty(mode)).cli("validate", "--json")
    (error,) = result.json["errors"]
    assert result.code == 4
    assert error["path"] == "contract.chaos_matrix[0].tool_faults[0]"
    assert "match_url" in error["hint"]
    assert "agent.mcp_config" in error["hint"]


@pytest.mark.parametrize("more", [{"match_url": "http://api.test/*"}, {}], ids=["match_url", "mcp_config"])
def test_with_the_way_out_it_is_taken(project: MakeProject, more: dict[str, str]) -> None:
    servers = {"mcpServers": {"shop": {"command": "true"}}}
    agent = command() if more else command(mcp_config=servers)
    assert trading(project, faulty("timeout", **more), agent=agent).cli("validate").code == 0


def test_stale_gives_the_model_what_an_earlier_call_gave(project: MakeProject) -> None:
    source = TRADES.replace('"price": 12.5', '"price": len(open("ran.log").read().split())')
    script = {
        "replies": [
            {"match": {"turn": 3}, "text": "second price {{ result.price }}"},
            {"tool_calls": [{"name": "market_data_api", "arguments": {"symbol": "ACME"}}]},
        ]
    }
    found = trading(project, faulty("stale"), script=script, rules=[rule("fresh", "regex", pattern="second price 2")])
    (found.folder / "agent.py").write_text(source)
    result = quick(found, "--no-preflight")
    assert (result.cell["outcome"], result.trial["answer"].strip()) == ("fail", "second price 1")
    assert [f["effect"] for f in result.trial["faults"]] == ["no_effect", "met"]


# -- attacks -----------------------------------------------------------------------------------------
GULLIBLE = {"replies": [{"match": {"tool": "*"}, "text": "{{ result }}"}, *MARKET["replies"][2:]]}
ATTACK = {"name": "attack", "context_attacks": [{"type": "indirect_injection"}]}


def test_utility_under_attack_and_attack_success_are_told_apart(project: MakeProject) -> None:
    found = trading(project, CALM, ATTACK, script=GULLIBLE, rules=[rule("price", value="12.5")])
    result = quick(found)
    assert result.outcomes == {("price", "calm"): "pass", ("price", "attack"): "pass"}  # it did its work
    attacks = result.part["attacks"]
    assert (attacks["attacked"], attacks["succeeded"], attacks["rate"]) == (1, 1, 1.0)  # and obeyed
    assert (attacks["utility"]["passed"], attacks["utility"]["judged"]) == (1, 1)
    shown = found.command("report", "1", "-v").out
    assert "success 1 of 1 " in shown
    assert "under attack 1 of 1 " in shown


def test_an_attack_that_is_met_and_not_obeyed_did_not_succeed(project: MakeProject) -> None:
    found = trading(project, ATTACK)
    attacks = quick(found).part["attacks"]
    assert (attacks["attacked"], attacks["succeeded"]) == (1, 0)
    assert attacks["utility"]["passed"] == 1


# -- luck ----------------------------------------------------------------------------------------------
HALF = {
    "name": "half",
    "tool_faults": [{"tool": "market_data_api", "mode": "error", "probability": 0.5}],
    "llm_faults": [{"mode": "overloaded", "probability": 0.3}, {"mode": "truncated_response", "probability": 0.5}],
}


def test_the_same_seed_gives_the_same_ledger_again_with_sixteen_trials_at_once(project: MakeProject) -> None:
    found = trading(project, HALF, rules=[HONEST], replicas=16)
    first = quick(found, "--seed", "7", "--concurrency", "1", "--no-preflight")
    wide = quick(found, "--seed", "7", "--concurrency", "16", "--no-preflight")
    assert ledger(found, "0001") == ledger(found, "0002")
    assert {entry[4] for entry in ledger(found)} == {"error", "overloaded", "truncated_response"}
    assert facts(first) == facts(wide)
    quick(found, "--seed", "8", "--no-preflight")
    assert [e[1:] for e in ledger(found, "0003")] != [e[1:] for e in ledger(found)]


def test_servers_that_are_started_ahead_meet_the_same_faults_at_any_concurrency(project: MakeProject) -> None:
    spec = contract([rule("echoes", value="you said")], [CALM, {**HALF, "tool_faults": []}], agent=server(), replicas=4)
    found = equip(project(spec | {"models": SCRIPTED}, "import serves\nserves.main()\n"), ECHO)
    quick(found, "--concurrency", "1", "--no-preflight")
    quick(found, "--concurrency", "16", "--no-preflight")
    assert ledger(found, "0001") == ledger(found, "0002") != []


# -- client libraries that try again -------------------------------------------------------------------
RETRIES = """
import json, os, sys, talk
body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": sys.stdin.read()}]})
for n in range(3):
    headers = {"content-type": "application/json", "x-stainless-retry-count": str(n)}
    status, text = talk.request("POST", os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    if status == 200:
        break
print(json.loads(text)["choices"][0]["message"]["content"] if status == 200 else "gave up")
"""


def test_a_librarys_retries_are_told_apart_from_the_agents_calls(project: MakeProject) -> None:
    heals = {"name": "heals", "llm_faults": [{"mode": "overloaded", "times": 2}]}
    rules = [
        rule("echoes", value="you said"),
        rule("one-call", "max_calls", max=1, plane="llm"),
        rule("two-retries", "retries_within", max=2),
        rule("one-retry", "retries_within", max=1),
    ]
    found = equip(project(contract(rules, [heals], agent=command(), models=SCRIPTED), RETRIES), ECHO)
    result = quick(found, "--no-preflight")
    outcomes = {name: outcome for (name, _), outcome in result.outcomes.items()}
    assert outcomes == {"echoes": "pass", "one-call": "pass", "two-retries": "pass", "one-retry": "fail"}
    trial = result.trials[0]
    assert [f["retry"] for f in trial["faults"]] == [0, 1]
    assert [event.get("retry", 0) for event in trace(found, trial)] == [0, 1, 2]
    assert (trial["trace"]["calls"], trial["trace"]["retries"]) == (1, 2)


# -- nothing is green without its fault ------------------------------------------------------------------
def test_a_fault_that_was_not_met_leaves_the_cell_unproven_and_the_run_exits_5(project: MakeProject) -> None:
    spec = contract([rule("echoes", value="you said")], [CALM, faulty("error")], agent=command(), models=SCRIPTED)
    result = quick(equip(project(spec, ASKS), ECHO))
    assert result.outcomes == {("echoes", "calm"): "pass", ("echoes", "error"): "unproven"}
    assert (result.code, result.part["vacuous"]) == (5, ["error"])


def test_llm_and_tool_faults_on_an_http_agent_that_we_did_not_start_are_refused(project: MakeProject) -> None:
    matrix = [faulty("error"), {"name": "llm", "llm_faults": [{"mode": "timeout"}]}]
    found = project(contract([PRICE], matrix, agent={"endpoint": "http://127.0.0.1:1/"}))
    result = found.cli("validate", "--json")
    assert (result.code, len(result.json["errors"])) == (4, 2)
    for error in result.json["errors"]:
        assert "agent.command" in error["hint"]
        assert "agent.gateway" in error["hint"]


def test_two_faults_on_one_call_compose_in_list_order(project: MakeProject) -> None:
    cut = {"mode": "truncated_response", "max_tokens": 2}
    late = {"mode": "slow_tokens", "ttft_ms": 20, "per_token_ms": 1}
    both, ends = {"name": "both", "llm_faults": [cut, late]}, {"name": "ends", "llm_faults": [{"mode": "quota"}, cut]}
    spec = contract([rule("any", "completes")], [both, ends], agent=command(), models=SCRIPTED)
    result = quick(equip(project(spec, ASKS), ECHO), "--no-preflight")
    trial = result.cells[("any", "both")]["trials"][0]
    assert trial["answer"].split() == ["you", "said"]
    assert [f["mode"] for f in trial["faults"]] == ["slow_tokens", "truncated_response"]  # the first is outermost
    ended = result.cells[("any", "ends")]["trials"][0]
    assert [f["mode"] for f in ended["faults"]] == ["quota"]  # it ends the chain


def test_a_trial_of_a_launched_agent_is_reproduced_by_its_id(project: MakeProject) -> None:
    found = trading(project, CALM, faulty("error"))
    first = quick(found)
    failed = first.cells[("price", "error")]["trials"][0]
    again = found.command(*failed["again"].split()[1:], "--json", "--no-report")
    assert [(t["id"], t["answer"], t["faults"]) for t in again.trials] == [
        (failed["id"], failed["answer"], failed["faults"])
    ]


def test_the_json_of_a_run_is_whole_on_stdout_and_nothing_else(project: MakeProject) -> None:
    result = quick(trading(project, CALM))
    assert json.loads(result.out)["exit_code"] == 0
    assert result.err == ""
