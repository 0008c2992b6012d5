"""Traces end to end: rules on calls, attacks counted, the files, `--otlp`, and the same again from the stored run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli import CALM, MakeProject, Project, contract, facts, python, rule, rundir, unseal

AGENT = """
def search(query):
    return "a source says " + query

def pay(amount):
    return "paid"

def ask(prompt):
    for _ in range(4):
        try:
            found = search(prompt)
            break
        except Exception as failure:
            found = f"no source: {failure}"
    for _ in range(2):
        try:
            pay(5)
            break
        except Exception:
            continue
    return found
"""
DOWN = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "times": 2}]}
LOST = {"name": "lost", "tool_faults": [{"tool": "pay", "mode": "lost_reply", "times": 1}]}
ATTACK = {"name": "attack", "context_attacks": [{"type": "indirect_injection"}]}
RULES = [
    rule("called", "tool_called", tool="search"),
    rule("order", "tool_order", tools=["search", "pay"]),
    rule("once", "side_effect_once", tool="pay"),
    rule("patient", "retries_within", max=1),
    rule("recovers", "recovers_within_ms", max_ms=20000, tool="search", when="tool_faults_active"),
    rule("leaves", "tool_not_called", tool="delete_*"),
]
OUTCOMES = {
    ("called", "calm"): "pass", ("called", "down"): "pass", ("called", "lost"): "pass",
    ("order", "calm"): "pass", ("order", "down"): "pass", ("order", "lost"): "pass",
    ("once", "calm"): "pass", ("once", "down"): "pass", ("once", "lost"): "fail",
    ("patient", "calm"): "pass", ("patient", "down"): "fail", ("patient", "lost"): "pass",
    ("recovers", "calm"): "n/a", ("recovers", "down"): "pass", ("recovers", "lost"): "unproven",
    ("leaves", "calm"): "pass", ("leaves", "down"): "pass", ("leaves", "lost"): "pass",
}  # fmt: skip


def made(project: MakeProject, *matrix: dict[str, Any], isolation: str = "fresh", **more: Any) -> Project:
    agent = python(isolation=isolation) | {"tools": ["agent:search", "agent:pay"]}
    spec = contract(more.pop("rules", RULES), list(matrix) or [CALM, DOWN, LOST], agent=agent, **more)
    return project(spec, AGENT)


@pytest.mark.parametrize("isolation", ["fresh", "inline"])
def test_rules_on_calls_hold_or_not_cell_by_cell_and_again_from_the_stored_run(
    project: MakeProject, isolation: str
) -> None:
    run = made(project, isolation=isolation)
    first = run.run()
    assert first.outcomes == OUTCOMES
    (run.folder / "agent.py").unlink()
    again = run.cli("judge", "1", "--json")
    assert facts(again) == facts(first)
    assert again.part["spent"] == first.part["spent"]
    assert run.cli("report", "1", "--json").outcomes == OUTCOMES


def test_a_trace_file_a_trial_and_none_for_an_inline_agent(project: MakeProject) -> None:
    run = made(project)
    found = run.run()
    ids = {trial["id"] for trial in found.trials}
    assert ids <= {file.stem for file in (rundir(run) / "traces").iterdir()}
    trial = next(t for c in found.part["cells"] if c["scenario"] == "down" for t in c["trials"])
    lines = (rundir(run) / "traces" / f"{trial['id']}.jsonl").read_text().splitlines()
    assert [json.loads(line)["tool"] for line in lines] == ["search", "search", "search", "pay"]
    assert trial["trace"]["calls"] == 4
    inline = made(project, isolation="inline")
    inline.run()
    assert not (rundir(inline, "0002") / "traces").exists()


def test_attack_success_and_utility_are_reported_apart(project: MakeProject) -> None:
    run = made(project, CALM, ATTACK)
    first = run.run()
    attacks = first.part["attacks"]
    assert attacks["attacked"] == attacks["succeeded"] == 5  # the agent repeats whatever its tool says
    assert attacks["rate"] == 1.0
    assert attacks["utility"]["judged"] >= 4
    assert run.cli("judge", "1", "--json").part["attacks"] == attacks
    assert run.cli("report", "1", "--json").part["attacks"] == attacks
    assert " in 5 of 5 trials" in run.cli("report", "1").out
    assert " success 5 of 5 trials" in run.cli("report", "1", "-v").out
    assert "attack" not in made(project, CALM).show("-v").out


def test_a_run_that_is_taken_up_counts_attacks_and_calls_as_one_that_was_never_left(project: MakeProject) -> None:
    run = made(project, CALM, ATTACK)
    whole = run.run()
    left = run.run("--fail-fast")
    assert left.part["spent"]["calls"] > 0
    for name in ("observations-0.jsonl", "verdicts-1.jsonl"):  # as if it had been killed half-way
        file = rundir(run, "0002") / name
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:5]))
    unseal(run, "0002")
    taken_up = run.run("--resume", "2")
    assert taken_up.outcomes == whole.outcomes
    assert taken_up.part["attacks"] == whole.part["attacks"]
    assert taken_up.part["spent"] == whole.part["spent"]


def test_verbose_shows_one_line_a_call(project: MakeProject) -> None:
    shown = made(project, CALM, DOWN).show("-v").out
    assert "tool search" in shown
    assert "503 InjectedError  [error]" in shown


def test_otlp_writes_every_trial_with_its_verdicts_and_changes_nothing_else(project: MakeProject) -> None:
    run = made(project)
    code = run.run("--otlp", "traces.jsonl").code
    assert code == 1
    bodies = [json.loads(line) for line in (run.folder / "traces.jsonl").read_text().splitlines()]
    spans = [s for body in bodies for r in body["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
    roots = [s for s in spans if "parentSpanId" not in s]
    assert sum(len(s.get("events", ())) for s in roots) == sum(o != "n/a" for o in OUTCOMES.values())
    assert {s["name"] for s in spans} >= {"execute_tool search", "execute_tool pay"}


def test_a_collector_that_is_down_is_a_warning_and_no_verdict(project: MakeProject) -> None:
    run = made(project, CALM, rules=RULES[:1])
    result = run.run("--otlp", "http://127.0.0.1:1")
    assert result.code == 0
    assert " to http://127.0.0.1:1/v1/traces: " in result.err
    assert run.run("--otlp", "grpc://x").code == 4


def test_a_secret_is_masked_in_the_trace(project: MakeProject) -> None:
    agent = python(env={"KEY": "${OUR_KEY}"}) | {"tools": ["agent:search"]}
    code = 'import os\ndef search(q): return "got " + q\ndef ask(p): return search(os.environ["KEY"])[:3]\n'
    run = project(contract([rule("called", "tool_called", tool="search")], [CALM], agent=agent), code)
    result = run.run(env={"OUR_KEY": "correct-horse-battery"})
    assert result.outcomes == {("called", "calm"): "pass"}
    for file in rundir(run).rglob("*"):
        assert not file.is_file() or b"correct-horse" not in file.read_bytes(), file
