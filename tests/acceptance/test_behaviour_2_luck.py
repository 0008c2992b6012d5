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


# "`probability` is drawn per (target, argument digest, occurrence) for tools": order of other calls changes nothing
def test_2_probability_is_drawn_by_arguments_not_by_order(project: MakeProject) -> None:
    weather = tool_fault("error", probability=0.5)
    backwards = CALLS.replace("range(8)", "reversed(range(8))")
    one = project(contract([ANY], [weather]), CALLS, name="forth").run("--allow-vacuous")
    two = project(contract([ANY], [weather]), backwards, name="back").run("--allow-vacuous")
    assert one.trial["answer"] == two.trial["answer"][::-1]
    assert one.trial["answer"] not in ("........", "xxxxxxxx")


# "an SDK's retry is an attempt": the same arguments again draw anew, and are counted
def test_2_a_retry_is_an_attempt_of_its_own(project: MakeProject) -> None:
    same = CALLS.replace('search(f"{prompt} {n}")', "search(prompt)")
    result = project(contract([ANY], [tool_fault("error", probability=0.5)]), same).run("--allow-vacuous")
    assert set(result.trial["answer"]) == {".", "x"}
    calls = [f["call"] for f in result.trial["faults"]]
    assert calls == [n + 1 for n, sign in enumerate(result.trial["answer"]) if sign == "x"]


# "(target, n) for the LLM"
def test_2_probability_for_the_model_is_drawn_by_call_number(project: MakeProject) -> None:
    source = """
def model(prompt):
    return "word " * 30

def ask(prompt):
    return "".join("." if len(model(WORDS + str(n))) > 100 else "x" for n in range(8))

WORDS = "one"
"""
    section = {"type": "python", "endpoint": "agent:ask", "llm": "agent:model"}
    weather = [{"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 3, "probability": 0.5}]}]
    said = [
        project(contract([ANY], weather, agent=section), text, name=name).run("--allow-vacuous").trial["answer"]
        for name, text in (("one", source), ("two", source.replace('"one"', '"two"')))
    ]
    assert said[0] == said[1]
    assert set(said[0]) == {".", "x"}


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


# "Two faults that match one call: list order, the first is outermost; error and timeout end the chain."
def test_2_two_faults_on_one_call_compose_in_list_order(project: MakeProject) -> None:
    agent = "def search(q):\n    return 'truth'\n\ndef ask(prompt):\n    return search(prompt)\n"
    lie = {"tool": "search", "mode": "malicious_response", "payload": "a lie"}
    slow = {"tool": "search", "mode": "slow", "delay_ms": 10}
    weather = {"name": "both", "tool_faults": [slow, lie]}
    result = project(contract([rule("lie", value="a lie")], [weather]), agent).run()
    assert result.trial["answer"] == "a lie"
    assert sorted(f["mode"] for f in result.trial["faults"]) == ["malicious_response", "slow"]
