"""behaviour.md 2: from verdicts to cells: replicas, unproven chaos, `when`, baseline, calm."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, contract, python, rule

from golden_words import Golden

NO_TOOLS = {"type": "python", "endpoint": "agent:ask"}
RESET = {**NO_TOOLS, "reset_function": "agent:reset"}
PLANNED = """
import os

def plan():
    return os.environ["PLAN"][int(os.environ["HOLDFAST_REPLICA"])]

def reset():
    if plan() == "e":
        raise OSError("no connection to the database")

def ask(prompt):
    return {"p": "good", "f": "bad", "u": None, "e": "unreachable"}[plan()]
"""
"""Each replica does as its letter in PLAN says: pass, fail, no answer, our own failure."""
NOT_BAD = rule("not-bad", "regex", pattern="bad", negate=True)


def replicas(plan: str, how: Any = None, one: dict[str, Any] = NOT_BAD) -> dict[str, Any]:
    scoring = {} if how is None else {"scoring": {"replica_aggregation": how}}
    return contract([one], agent=RESET, replicas=len(plan), advanced={"retries": 0}, **scoring)


# "replicas of one (prompt, params) combine by `replica_aggregation`";
# "Error and unproven are undecided: a combination is decided only if it would be the same whatever they had been;
#  else error if any is error, else unproven."
@pytest.mark.parametrize(
    ("how", "plan", "outcome"),
    [
        (None, "ppp", "pass"),
        (None, "ppf", "fail"),
        ("all", "ppu", "unproven"),
        ("all", "pue", "error"),
        ("any", "pue", "pass"),
        ("majority", "pfu", "unproven"),
        ("majority", "ppff", "fail"),
        ({"at_least": 2}, "ppff", "pass"),
        ({"rate": 0.8}, "ppppf", "pass"),
        ({"rate": 0.5}, "ppfe", "pass"),
    ],
)
def test_2_replicas_combine_and_the_undecided_decide_nothing(
    project: MakeProject, how: Any, plan: str, outcome: str
) -> None:
    result = project(replicas(plan, how), PLANNED).run("--no-preflight", env={"PLAN": plan})
    assert result.cell["outcome"] == outcome
    counted = {letter: plan.count(letter) for letter in "pfeu"}
    cell = result.cell
    assert counted == {"p": cell["passes"], "f": cell["fails"], "e": cell["errors"], "u": cell["unproven"]}


# "Flaky = replicas of one prompt disagree."
def test_2_flaky_is_when_replicas_of_one_prompt_disagree(project: MakeProject) -> None:
    made = project(replicas("pf", "any"), PLANNED)
    result = made.run("--no-preflight", env={"PLAN": "pf"})
    assert (result.cell["outcome"], result.cell["flaky"], result.part["flaky"]) == ("pass", True, 1)
    shown = made.show("--no-preflight", "-v", env={"PLAN": "pf"})
    assert "1/2 ≈" in shown.out
    assert "1 flaky cell" in shown.out


# "Then a chaos cell that passed without its fault met becomes unproven"
def test_2_a_chaos_cell_that_passed_without_its_fault_met_is_unproven_and_explained(project: MakeProject) -> None:
    agent = "def search(q):\n    return q\n\ndef ask(prompt):\n    return 'by heart'\n"
    made = project(contract([rule("any", value="heart")], [CALM, DOWN]), agent)
    result = made.run()
    cell = result.cells["any", "down"]
    assert (cell["outcome"], cell["met"]) == ("unproven", False)
    assert (cell["code"], cell["key"]) == ("fault-not-called", ["search"])
    shown = made.show("-o", "r.html", "-o", "r.md", "-o", "r.xml")
    assert re.search(r"next +.* call search", shown.out)
    for name in ("r.md", "r.xml"):
        assert "never met" in made.read(name), name


# "a violation still fails"
def test_2_a_violation_fails_though_the_fault_was_not_met(project: MakeProject) -> None:
    agent = "def search(q):\n    return q\n\ndef ask(prompt):\n    return 'nothing'\n"
    result = project(contract([rule("cites", value="source")], [DOWN]), agent).run()
    assert (result.cell["outcome"], result.cell["met"]) == ("fail", False)
    assert result.code == 1


# "`tool_faults_active` rules need a tool fault met, `llm_faults_active` an LLM fault, others any"
TWO_PLANES = """
def search(q):
    return "data"

def model(prompt):
    return "some words of a model"

def ask(prompt):
    if prompt == "tool":
        try:
            search(prompt)
        except Exception:
            return "fine"
    if prompt == "llm":
        model(prompt)
    return "fine"
"""
BOTH = {
    "name": "both",
    "tool_faults": [{"tool": "search", "mode": "error"}],
    "llm_faults": [{"mode": "truncated_response", "max_tokens": 1}],
}
OF_EACH_KIND = [
    rule("tool", value="fine", when="tool_faults_active"),
    rule("llm", value="fine", when="llm_faults_active"),
    rule("chaos", value="fine", when="any_chaos_active"),
    rule("always", value="fine"),
]


@pytest.mark.parametrize(
    ("prompt", "proven"),
    [("tool", {"tool", "chaos", "always"}), ("llm", {"llm", "chaos", "always"}), ("neither", set())],
)
def test_2_a_rule_needs_a_fault_of_its_own_plane_met(project: MakeProject, prompt: str, proven: set[str]) -> None:
    spec = contract(OF_EACH_KIND, [BOTH], prompts=(prompt,), agent=python(llm="agent:model"), isolation="scenario")
    result = project(spec, TWO_PLANES).run()
    assert {key[0] for key, outcome in result.outcomes.items() if outcome == "pass"} == proven
    assert set(result.outcomes.values()) <= {"pass", "unproven"}


# "`when`: always, tool_faults_active, llm_faults_active, any_chaos_active, no_chaos; decided by what the
#  scenario declares."
def test_2_when_is_decided_by_what_the_scenario_declares(project: MakeProject) -> None:
    rules = [*OF_EACH_KIND, rule("calm-only", value="fine", when="no_chaos")]
    matrix = [
        CALM,
        {"name": "tools", "tool_faults": BOTH["tool_faults"]},
        {"name": "model", "llm_faults": BOTH["llm_faults"]},
        {"name": "attack", "context_attacks": [{"type": "memory_poisoning", "payload": "x"}]},
    ]
    spec = contract(rules, matrix, agent=python(llm="agent:model"), isolation="scenario")
    result = project(spec, TWO_PLANES).run()
    judged = {
        scenario: {rule for rule, name in result.outcomes if name == scenario and result.outcomes[rule, name] != "n/a"}
        for scenario in ("calm", "tools", "model", "attack")
    }
    assert judged == {
        "calm": {"always", "calm-only"},
        "tools": {"always", "chaos", "tool"},
        "model": {"always", "chaos", "llm"},
        "attack": {"always", "chaos"},
    }
    assert result.part["total"] == 2 + 3 + 3 + 2


def test_2_a_profile_is_chaos_for_when(project: MakeProject) -> None:
    matrix = [{"name": "outage", "profile": "api_outage"}]
    rules = [rule("calm-only", "regex", pattern=".", when="no_chaos"), rule("any", "regex", pattern=".")]
    outcomes = project(contract(rules, matrix)).run().outcomes
    assert outcomes["calm-only", "outage"] == "n/a"
    assert outcomes["any", "outage"] == "pass"


# "`baseline` defaults to auto: one control trial per prompt; compared prompt by prompt"
ECHO = """
def search(q):
    return q

def ask(prompt):
    try:
        return "The capital of " + search(prompt) + " is well known to every school child."
    except Exception:
        return "My tools are down, and I cannot say anything about that today, sorry."
"""


@pytest.mark.parametrize("settings", [{}, {"baseline": "auto"}])
def test_2_baseline_auto_compares_each_prompt_with_its_own_control(
    project: MakeProject, settings: dict[str, str]
) -> None:
    rules = [rule("same", "behavior_unchanged", **settings)]
    made = project(contract(rules, [CALM, DOWN], prompts=("France", "Mongolia")), ECHO)
    result = made.run()
    assert result.outcomes == {("same", "calm"): "pass", ("same", "down"): "fail"}
    controls = [t["task"]["turns"][0] for t in made.stored("trials.jsonl") if t["kind"] == "control"]
    assert sorted(controls) == ["France", "Mongolia"]


def test_2_baseline_by_hand_needs_no_control(project: MakeProject) -> None:
    rules = [rule("same", "behavior_unchanged", baseline="The capital of France is well known to every school child.")]
    made = project(contract(rules, [CALM], prompts=("France",)), ECHO)
    assert made.run("--no-preflight").cell["outcome"] == "pass"
    assert [t for t in made.stored("trials.jsonl") if t["kind"] == "control"] == []
    other = [rule("same", "behavior_unchanged", baseline="Forty-two goats sleep on the southern mountain tonight.")]
    assert project(contract(other, [CALM]), ECHO, name="other").run().cell["outcome"] == "fail"


# "a control without an answer makes it unproven"
def test_2_a_control_without_an_answer_makes_it_unproven(project: MakeProject) -> None:
    agent = """
def search(q):
    return q

def ask(prompt):
    try:
        search(prompt)
    except Exception:
        return "an answer"
    return None
"""
    result = project(contract([rule("same", "behavior_unchanged")], [DOWN]), agent).run()
    assert result.cell["outcome"] == "unproven"


# "A rule that already fails in calm is marked `fails in calm too` on its chaos cells."
def test_2_a_rule_that_fails_in_calm_is_marked_on_its_chaos_cells(project: MakeProject, golden: Golden) -> None:
    rules = [rule("never", value="unicorn"), rule("only-chaos", "regex", pattern="sorry", negate=True)]
    made = project(contract(rules, [CALM, DOWN]))
    result = made.run()
    assert result.cells["never", "down"]["fails_in_calm"] is True
    assert result.cells["never", "calm"]["fails_in_calm"] is False
    assert (result.cells["only-chaos", "down"]["outcome"], result.cells["only-chaos", "down"]["fails_in_calm"]) == (
        "fail",
        False,
    )
    golden([line for line in made.show().out.splitlines() if "never · " in line])


# "A cell counts once", however many prompts and replicas it has
def test_2_a_cell_counts_once_whatever_its_prompts_and_replicas(project: MakeProject) -> None:
    agent = "def ask(prompt):\n    return prompt\n"
    rules = [rule("many", value="p"), rule("one", value="nowhere", probes=["x"])]
    result = project(contract(rules, prompts=("p1", "p2", "p3"), agent=NO_TOOLS, replicas=2), agent).run()
    assert result.json["score"] == 50.0
    assert (result.part["judged"], result.part["total"], result.part["trials"]) == (2, 2, 8)
