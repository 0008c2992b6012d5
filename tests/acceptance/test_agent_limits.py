"""`agent.limits`: an agent that runs away is ended, and the ending names the limit and the number."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, MakeProject, contract, python, rule
from plane_agents import ECHO, SCRIPTED, command, equip, quick, server

RULES = [rule("ends_well", "ending", one_of=["answered"]), rule("known", "ending", one_of=["limit"])]
LOOPS = "import sys, talk\nprint('begun', flush=True)\nwhile True: talk.ask('again')\n"
SERVES_LOOPS = """
import serves, talk
def answer(prompt):
    while True: talk.ask("again")
serves.answer = answer
serves.main()
"""
LOOPS_IN_PYTHON = """
def search(q): return "nothing"
def ask(prompt):
    while True: search("again")
"""
ASKS_IN_PYTHON = "import talk\ndef search(q): ...\ndef ask(prompt):\n    while True: talk.ask('again')\n"


def ended(project: MakeProject, agent: dict[str, Any], source: str, limits: dict[str, Any]) -> dict[str, Any]:
    spec = contract(RULES[1:], [CALM], agent={**agent, "limits": limits, "timeout": 30_000}) | {"models": SCRIPTED}
    result = quick(equip(project(spec, source), ECHO), "--no-preflight")
    (trial,) = result.trials
    assert (result.code, trial["ending"], trial["outcome"]) == (0, "limit", "pass")
    return trial


@pytest.mark.parametrize(
    ("agent", "source"),
    [
        (command(), LOOPS),
        (server(), SERVES_LOOPS),
        (python(), LOOPS_IN_PYTHON),
        (python(), ASKS_IN_PYTHON),
    ],
    ids=["command", "server", "functions", "python"],
)
def test_too_many_calls_end_the_trial(project: MakeProject, agent: dict[str, Any], source: str) -> None:
    trial = ended(project, agent, source, {"calls": 7})
    assert trial["detail"] == "more than 7 calls (agent.limits.calls)"
    assert trial["latency_ms"] < 20_000
    made = "" if source is LOOPS_IN_PYTHON else "8 calls; the last was llm gpt-4o"  # functions are fast, and not held
    assert any(made in note for note in trial["notes"])


@pytest.mark.parametrize(
    ("limits", "detail"),
    [
        ({"tokens": 10}, "tokens, more than 10 (agent.limits.tokens)"),
        ({"cost": 0.00001}, "more than $1e-05 (agent.limits.cost)"),
    ],
)
def test_what_the_model_calls_use_is_limited_too(project: MakeProject, limits: dict[str, Any], detail: str) -> None:
    trial = ended(project, command(), LOOPS, limits)
    assert trial["detail"].endswith(detail)
    assert trial["answer"].strip() == "begun"


def test_a_limit_that_is_not_passed_is_none(project: MakeProject) -> None:
    agent = command(limits={"calls": 2, "tokens": 10_000, "cost": 1.0})
    spec = contract(RULES[:1], [CALM], agent=agent) | {"models": SCRIPTED}
    source = "import talk\nprint(talk.ask('a'), talk.ask('b'))\n"
    (trial,) = quick(equip(project(spec, source), ECHO), "--no-preflight").trials
    assert (trial["ending"], trial["outcome"]) == ("answered", "pass")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (command(limits={}), "agent.limits  nothing is limited"),
        (command(limits={"calls": 0}), "agent.limits.calls"),
        (command(limits={"cost": 0}), "agent.limits.cost"),
        (command(limits={"tokens": -1}), "agent.limits.tokens"),
        (command(limits={"call": 3}), "did you mean calls"),
        ({"endpoint": "http://127.0.0.1:9/ask", "limits": {"calls": 3}}, "agent.limits  has no meaning"),
    ],
)
def test_limits_that_mean_nothing_are_refused(project: MakeProject, agent: dict[str, Any], told: str) -> None:
    result = project(contract(RULES, [CALM], agent=agent)).command("contract", "validate")
    assert result.code == 4
    assert told in result.out + result.err
