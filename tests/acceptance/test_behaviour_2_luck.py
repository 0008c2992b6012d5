"""behaviour.md 2: luck, counters, and calls that overlap."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, MakeProject, contract, python, rule, tool_fault

CALLS = """
def search(query):
    return f"data of {query}"

def ask(prompt):
    said = []
    for n in range(8):
        try:
            search(f"{prompt} {n}")
            said.append(".")
        except Exception:
            said.append("x")
    return "".join(said)
"""
"""Says which of its eight calls failed."""
ANY = rule("any", "regex", pattern="^[.x]{8}$")


SCHEDULES: list[tuple[dict[str, Any], str]] = [
    ({}, "xxxxxxxx"),
    ({"after_calls": 3}, "...xxxxx"),
    ({"after_calls": 0}, "xxxxxxxx"),
    ({"on_call": 2}, ".x......"),
    ({"every": 3}, "..x..x.."),
    ({"times": 2}, "xx......"),
    ({"after_calls": 2, "times": 1}, "..x....."),
    ({"after_calls": 1, "every": 2}, "..x.x.x."),
    ({"every": 2, "times": 2}, ".x.x...."),
    ({"match": {"query": "* 4"}}, "....x..."),
    ({"match": {"query": "hello [1-3]"}, "after_calls": 1}, "..xx...."),
    ({"probability": 0}, "........"),
]


# "`after_calls` lets N calls through and fires from N+1, `on_call`, `every`, `times`";
# "count attempts as they arrive at the target"
def test_2_counters_count_attempts_as_they_arrive(project: MakeProject) -> None:
    matrix = [{**tool_fault("error", **schedule), "name": str(schedule)} for schedule, _ in SCHEDULES]
    result = project(contract([ANY], matrix), CALLS).run("--allow-vacuous")
    said = {scenario: cell["trials"][0]["answer"] for (_, scenario), cell in result.cells.items()}
    assert said == {str(schedule): wanted for schedule, wanted in SCHEDULES}


# "per trial": a counter starts anew with each
def test_2_counters_start_anew_with_every_trial(project: MakeProject) -> None:
    spec = contract([ANY], [tool_fault("error", times=2)], prompts=("a", "b"), agent=python(isolation="worker"))
    result = project(spec, CALLS).run("--concurrency", "1")
    assert [t["answer"] for t in result.trials] == ["xx......", "xx......"]


# "Luck = ... without the invariant: every rule of a scenario meets the same weather."
def test_2_every_rule_of_a_scenario_meets_the_same_weather(project: MakeProject) -> None:
    rules = [rule(f"r{i}", "regex", pattern="^[.x]{8}$") for i in range(4)]
    spec = contract(rules, [tool_fault("error", probability=0.5)], prompts=("a", "b", "c"))
    result = project(spec, CALLS).run("--allow-vacuous")
    for prompt in "abc":
        met = [[(f["call"], f["effect"]) for f in t["faults"]] for t in result.trials if t["prompt"] == prompt]
        assert len(met) == 4
        assert met[0] == met[1] == met[2] == met[3]
    assert len({t["answer"] for t in result.trials}) > 1, "prompts meet weather of their own"


# "keyed by (seed, task digest, params, replica, content of the injection, its ordinal among equal injections, call
# key). The scenario's name and the fault's index in the list are not part of the key"
def test_2_luck_follows_seed_prompt_replica_and_fault(project: MakeProject) -> None:
    def said(name: str, *args: str, scenario: str = "chaos", prompt: str = "p") -> list[str]:
        weather = {**tool_fault("error", probability=0.5), "name": scenario}
        made = project(contract([ANY], [weather], prompts=(prompt,)), CALLS, name=name)
        return [t["answer"] for t in made.run(*args, "--allow-vacuous").trials]

    base = said("base")
    assert said("again") == base
    assert said("seed", "--seed", "5") != base
    assert said("scenario", scenario="other") == base
    assert said("prompt", prompt="q") != base
    two = said("replicas", "--replicas", "3")
    assert two[0] == base[0]
    assert len(set(two)) > 1


# "one that calls concurrently is marked `order may differ`"
CONCURRENT = """
import asyncio

async def search(query):
    await asyncio.sleep(0.02)
    return query

async def ask(prompt):
    await asyncio.gather(*(search(str(n)) for n in range(3)), return_exceptions=True)
    return "done"
"""
IN_THREADS = """
import time
from concurrent.futures import ThreadPoolExecutor

def search(query):
    time.sleep(0.05)
    return query

def ask(prompt):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(search, "abc"))
    return "done"
"""


@pytest.mark.parametrize("source", [CONCURRENT, IN_THREADS])
def test_2_concurrent_callers_are_marked_order_may_differ(project: MakeProject, source: str) -> None:
    made = project(contract([rule("any", value="done")], [CALM, tool_fault("slow", delay_ms=20)]), source)
    result = made.run()
    assert result.cells["any", "chaos"]["concurrent"] is True
    assert "order may differ" in made.show().out


def test_2_callers_one_at_a_time_are_not_marked(project: MakeProject) -> None:
    made = project(contract([ANY], [tool_fault("error", times=1)]), CALLS)
    assert made.run().cell["concurrent"] is False
    assert "order may differ" not in made.show().out
