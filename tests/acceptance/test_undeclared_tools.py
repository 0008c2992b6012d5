"""Tool faults on a Python agent that declares no tools: a clear error, unless its model calls offer some."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, MakeProject, Project, contract, rule
from plane_agents import ECHO, MARKET, SCRIPTED, equip, quick

LOOKS_UP = """
import os  # what could ask a model, as far as the source tells

def market_data_api(symbol):
    open("asked.log", "a").write("x")
    return "12.5"

def answer(prompt):
    return market_data_api("ACME")
"""
ASKS_PLAINLY = """
import talk

def answer(prompt):
    open("asked.log", "a").write("x")
    return talk.ask(prompt)
"""
OFFERS = """
import json, talk

def market_data_api(symbol):
    return json.dumps({"symbol": symbol, "price": 12.5})

def answer(prompt):
    open("asked.log", "a").write("x")
    return talk.work(prompt, {"market_data_api": market_data_api})
"""
CRASHES = """
import os

def answer(prompt):
    open("asked.log", "a").write("x")
    raise ValueError("no key")
"""
DOWN = {"name": "down", "tool_faults": [{"tool": "market_data_api", "mode": "error"}]}


def desk(project: MakeProject, source: str, *matrix: dict[str, Any], **agent: Any) -> Project:
    section = {"type": "python", "endpoint": "agent:answer", **agent}
    spec = contract([rule("any", "completes")], list(matrix), agent=section, models=SCRIPTED)
    return equip(project(spec, source), ECHO if source == ASKS_PLAINLY else MARKET)


@pytest.mark.parametrize("source", [LOOKS_UP, ASKS_PLAINLY], ids=["calls-no-model", "offers-no-tools"])
@pytest.mark.parametrize("options", [(), ("--no-preflight",)])
def test_no_model_call_offers_tools(project: MakeProject, source: str, options: tuple[str, ...]) -> None:
    found = desk(project, source, CALM, DOWN)
    result = quick(found, *options)
    assert result.code == 4
    (error,) = result.json["errors"]
    assert error["code"] == "no-tools-seen"
    assert error["line"] > 0
    assert "agent.tools" in error["hint"]
    assert "ToolRegistry" in error["hint"]
    if not options:
        assert found.read("asked.log") == "x"  # the preflight decided, and nothing else was asked


def test_an_agent_whose_model_calls_offer_tools_meets_the_fault_in_their_results(project: MakeProject) -> None:
    for options in ((), ("--no-preflight",)):
        result = quick(desk(project, OFFERS, CALM, DOWN), *options)
        assert result.outcomes == {("any", "calm"): "pass", ("any", "down"): "pass"}
        assert result.cells["any", "down"]["trials"][0]["faults"][0]["plane"] == "tool_result"


@pytest.mark.parametrize(
    "weather",
    [
        {"tool_faults": [{"tool": "market_data_api", "mode": "error", "match_url": "http://127.0.0.1:9/*"}]},
        {"mcp_faults": [{"tool": "market_data_api", "mode": "hang"}]},
        {"llm_faults": [{"mode": "rate_limit"}]},
    ],
    ids=["url", "mcp", "llm"],
)
def test_faults_that_are_met_elsewhere_are_exempt(project: MakeProject, weather: dict[str, Any]) -> None:
    assert quick(desk(project, ASKS_PLAINLY, CALM, {"name": "other", **weather})).code != 4


@pytest.mark.parametrize(
    ("source", "agent"),
    [
        (LOOKS_UP, {"tools": ["agent:market_data_api"]}),
        (LOOKS_UP, {"mcp_config": {"mcpServers": {"shop": {"command": "true"}}}}),
        (LOOKS_UP.replace("def market", "import holdfast\n@holdfast.tool\ndef market"), {}),
        (CRASHES, {}),  # nothing can be told of an agent that ended badly
    ],
    ids=["tools", "mcp_config", "marked", "crashed"],
)
def test_agents_of_which_it_cannot_be_said_are_run(project: MakeProject, source: str, agent: dict[str, Any]) -> None:
    assert quick(desk(project, source, CALM, DOWN, **agent)).code != 4


def test_the_doctor_says_the_same(project: MakeProject) -> None:
    result = desk(project, LOOKS_UP, CALM, DOWN).cli("doctor", "--json")
    assert result.code == 4
    assert "ToolRegistry" in result.out
