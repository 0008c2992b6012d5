"""Results that no model asked for in a trial: an example in the prompt, a conversation that an agent kept."""

from __future__ import annotations

from typing import Any

from cli import CALM, MakeProject, contract, rule
from plane_agents import MARKET, SCRIPTED, command, equip, quick, server, trace

DOWN = {"name": "down", "tool_faults": [{"tool": "market_data_api", "mode": "error", "on_call": 1}]}

KEEPS = """
import json, serves, talk

kept = []

def market_data_api(symbol):
    return json.dumps({"symbol": symbol, "price": 12.5})

def answer(prompt):
    kept.append({"role": "user", "content": prompt})
    for _ in range(4):
        said = talk.chat(kept, ["market_data_api"])[1]["choices"][0]["message"]
        kept.append(said)
        for call in said.get("tool_calls") or ():
            text = market_data_api(**json.loads(call["function"]["arguments"]))
            kept.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if not said.get("tool_calls"):
            return said["content"]

serves.answer = answer
serves.main()
"""
"""A server that goes on with one conversation from trial to trial."""

REMEMBERS = {
    "replies": [
        {"match": {"turn": 1}, "tool_calls": [{"name": "market_data_api", "arguments": {"symbol": "ACME"}}]},
        {"text": "the price is 12.5"},
    ]
}
"""Calls the tool once in a conversation, and then knows."""

SHOWS = """
import json, sys, talk

def market_data_api(symbol):
    open("ran.log", "a").write(symbol + "\\n")
    return json.dumps({"symbol": symbol, "price": 12.5})

function = {"name": "market_data_api", "arguments": json.dumps({"symbol": "ACME"})}
messages = [
    {"role": "user", "content": "What does ACME cost?"},
    {"role": "assistant", "tool_calls": [{"id": "call_example", "type": "function", "function": function}]},
    {"role": "tool", "tool_call_id": "call_example", "content": json.dumps({"symbol": "ACME", "price": 12.5})},
    {"role": "assistant", "content": "the price is 12.5"},
    {"role": "user", "content": sys.stdin.read()},
]
while True:
    said = talk.chat(messages, ["market_data_api"])[1]["choices"][0]["message"]
    messages.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        text = market_data_api(**json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
print(said["content"])
"""
"""A command whose prompt holds an example of the very call that its model will ask for."""

SHOWN = {
    "replies": [
        {"match": {"turn": 4, "result": "*price*"}, "text": "the price is {{ result.price }}"},
        {"match": {"turn": 4}, "text": "data unavailable"},
        {"match": {"turn": 3}, "tool_calls": MARKET["replies"][2]["tool_calls"]},
    ]
}


def calls(events: list[Any]) -> list[tuple[int, str]]:
    return [(e["n"], e.get("fault", "")) for e in events if e["event_type"] == "tool_call"]


def test_a_conversation_kept_from_an_earlier_trial_proves_nothing_in_the_next(project: MakeProject) -> None:
    rules = [rule("price", value="the price is 12.5"), rule("once", "max_calls", tool="market_data_api", max=0)]
    spec = contract(rules, [CALM, DOWN], agent=server(isolation="worker"), models=SCRIPTED, isolation="scenario")
    found = equip(project(spec, KEEPS), REMEMBERS)
    result = quick(found, "--no-preflight", "--concurrency", "1")
    assert result.outcomes == {
        ("price", "calm"): "pass", ("price", "down"): "unproven",
        ("once", "calm"): "fail", ("once", "down"): "unproven",
    }  # fmt: skip
    trials = {name: result.cells[("price", name)]["trials"][0] for name in ("calm", "down")}
    assert calls(trace(found, trials["calm"])) == [(1, "")]
    assert calls(trace(found, trials["down"])) == []
    assert trials["down"]["faults"] == []


def test_a_fault_on_the_first_call_hits_the_real_one_and_not_the_example(project: MakeProject) -> None:
    rules = [rule("price", value="the price is 12.5"), rule("once", "max_calls", tool="market_data_api", max=1)]
    spec = contract(rules, [CALM, DOWN], agent=command(), models=SCRIPTED, isolation="scenario")
    found = equip(project(spec, SHOWS), SHOWN)
    result = quick(found, "--no-preflight")
    assert result.outcomes == {
        ("price", "calm"): "pass", ("price", "down"): "fail",
        ("once", "calm"): "pass", ("once", "down"): "unproven",  # the tool ran in spite of its fault
    }  # fmt: skip
    trial = result.cells[("price", "down")]["trials"][0]
    assert trial["answer"].strip() == "data unavailable"
    assert calls(trace(found, trial)) == [(1, "error")]
    assert len(found.lines("ran.log")) == 2
