"""What did not hold, by cause: one ending that left nothing to judge is one, whatever rules it broke."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, contract, python, rule

RULES = [
    rule("cites", value="source", severity="critical"),
    rule("answers", "completes"),
    rule("in-time", "latency", max_ms=60_000),
    rule("clean", "excludes_pattern", patterns=["zzz"]),
]
ENDINGS = {
    "raises": "raise RuntimeError('boom')",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "hangs": "import time; time.sleep(60)",
    "says nothing": "return ''",
}


AGENT = """
def search(query):
    return query


def ask(prompt):
    try:
        search(prompt)
    except Exception as down:
        found = str(down)
    {}
"""


@pytest.mark.parametrize("isolation", ["cell", "scenario"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_one_bad_ending_is_one_cause_with_every_rule_under_it(
    project: MakeProject, ending: str, isolation: str
) -> None:
    made = project(
        contract(RULES, [CALM, DOWN], agent=python(timeout="700ms"), isolation=isolation), AGENT.format(ENDINGS[ending])
    )
    found = made.run("--no-preflight").json
    (cause,) = found["causes"]
    assert (cause["rules"], cause["outcome"]) == (["cites", "answers", "in-time", "clean"], "fail")
    assert cause["trials"] == (8 if isolation == "cell" else 2)
    cells = {(cell["invariant"], cell["scenario"]) for cell in cause["cells"]}
    assert cells == {(one["id"], where) for one in RULES for where in ("calm", "down")}
    assert [entry["cells"] for entry in cause["faults"]] == [4, 4]
    viewed = made.viewed("runs/0001/causes")
    assert (viewed["total"], viewed["cells"], viewed["causes"][0]["count"]) == (1, 8, 8)
    assert viewed["causes"][0]["faults"], "every set of faults is named, not the first alone"


def test_two_crashes_are_two_causes_and_an_answer_that_fails_is_another(project: MakeProject) -> None:
    body = "1 / 0 if prompt == 'one' else 0; [][1] if prompt == 'two' else 0; return 'nothing'"
    spec = contract(RULES[:2], [CALM], prompts=("one", "two", "three"), agent=python(), isolation="cell")
    made = project(spec, AGENT.format(body))
    found = made.run("--no-preflight").json["causes"]
    assert [one["rules"] for one in found] == [["cites", "answers"], ["cites", "answers"], ["cites"]]
    assert [one["trials"] for one in found] == [2, 2, 1]


def scenario(**rules: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "id": "cases",
        "agent": {"type": "python", "endpoint": "agent:ask"},
        "task": {"prompt": "hello"},
        "scoring": {"pass_threshold": 0.5},
        "invariants": {
            name: {"description": name, "weight": 1, "check": {"type": "contains", "value": value}}
            for name, value in rules.items()
        },
    }


def test_a_case_that_passed_is_not_among_what_did_not_hold(project: MakeProject) -> None:
    made = project(scenario(says="hello", cites="source"), "def ask(prompt):\n    return prompt\n")
    assert made.cli("run", "--json").json["causes"] == []
    assert made.viewed("runs/0001/causes") == {"causes": [], "total": 0, "cells": 0}
