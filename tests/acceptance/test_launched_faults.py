"""Faults on a launched agent's own calls: tools by name in its model traffic, attacks, and the same luck every time."""

from __future__ import annotations

from typing import Any

from cli import CALM, MakeProject, Project, contract, facts, rule
from plane_agents import ECHO, MARKET, SCRIPTED, TRADES, command, equip, ledger, quick, server, trace

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
