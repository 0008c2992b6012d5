"""A hunt on a live model that is not deterministic."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from cli import Asked, MakeProject, Reply, Serve, contract, rule
from plane_agents import command, equip
from test_launched_models import NO_KEYS, completion

PLANS = """
import sys, talk

def say(prompt):
    try:
        status, body = talk.chat([{"role": "user", "content": prompt}])
        return body["choices"][0]["message"]["content"] if status == 200 else ""
    except Exception:
        return ""

plan = say("Plan: " + sys.stdin.read())
print(say("Do it. " + (plan or "There is no plan.")) or "Not even once.")
"""
"""Asks for a plan, and works without one if the model fails."""


def moody(seed: int, *, fires: float) -> Callable[[Asked], Reply]:
    """A model that pays twice in 2 % of all trials, and more often if it has no plan."""
    draw = random.Random(seed)

    def answer(asked: Asked) -> Reply:
        prompt = json.loads(asked.body)["messages"][-1]["content"]
        if prompt.startswith("Plan: "):
            return completion("first look, then pay")
        fails = draw.random() < (fires if "no plan" in prompt else 0.02)
        return completion("Paid twice." if fails else "Paid once.")

    return answer


@pytest.mark.long
def test_a_cause_that_fires_most_of_the_time_is_distinguished_from_calm(project: MakeProject, serve: Serve) -> None:
    def hunt(fires: float) -> dict[str, Any]:
        models = {"gpt-*": {"base_url": f"{serve(moody(4, fires=fires)).url}/v1", "name": "local-7b"}}
        spec = contract([rule("paid-once", value="once")], agent=command(), models=models, advanced={"concurrency": 1})
        made = equip(project(spec, PLANS))
        return made.cli("hunt", "--json", "--order", "1", "--max-trials", "100", env=NO_KEYS).json

    found = hunt(fires=0.7)
    assert found["exit_code"] == 1
    for cause in found["causes"]:
        assert [(one["plane"], one["on_call"]) for one in cause["faults"]] == [("llm", 1)]
        assert cause["calm_runs"] >= 10
        assert cause["failed"] / cause["runs"] > 0.4 > cause["calm_failed"] / cause["calm_runs"]
    # The agent is fixed: what is left is what calm does, too.
    fixed = hunt(fires=0.02)
    assert (fixed["causes"], fixed["fixed"]) == ([], [one["id"] for one in found["causes"]])
