"""Stored runs judged anew and shown again, without the agent: design.md's store, behaviour.md 5."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, facts, rule, rundir

RULES = [rule("source", value="source", severity="critical"), rule("says", value="says", severity="high")]


def judged(made: Project, *args: str) -> Any:
    return made.cli("judge", "1", "--json", *args)


# "`holdfast judge RUN` needs no agent"
def test_3_judge_needs_no_agent_and_adds_a_file_of_verdicts(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN], prompts=("a", "b")))
    first = made.run()
    before = (rundir(made) / "verdicts-1.jsonl").read_bytes()
    score = (rundir(made) / "score.json").read_bytes()
    (made.folder / "agent.py").unlink()
    result = judged(made)
    assert facts(result) == facts(first)
    assert result.code == first.code
    assert (rundir(made) / "verdicts-2.jsonl").exists()
    assert (rundir(made) / "verdicts-1.jsonl").read_bytes() == before
    assert (rundir(made) / "score.json").read_bytes() == score
    assert "0001" in result.json["judged_from"]
    judged(made)
    assert (rundir(made) / "verdicts-3.jsonl").exists()


def test_3_judge_by_changed_rules(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], [CALM, DOWN]))
    made.run()
    made.write(contract([rule("source", value="a source says")], [CALM, DOWN]))
    (made.folder / "agent.py").unlink()
    assert judged(made).outcomes == {("source", "calm"): "pass", ("source", "down"): "pass"}
    result = judged(made, "-c", "holdfast.yaml")
    assert result.outcomes == {("source", "calm"): "pass", ("source", "down"): "fail"}
    assert result.code == 1


# "applies a new rule to every stored trial of the scenario that asked the same prompts, and says so"
def test_3_judge_applies_a_new_rule_to_every_stored_trial_that_asked_the_same_and_says_so(
    project: MakeProject,
) -> None:
    made = project(contract(RULES, [CALM], prompts=("a", "b")))
    made.run()
    made.write(contract([*RULES, rule("new", value="source"), rule("leak", value="x", probes=["b"])], [CALM],
                        prompts=("a", "b")))  # fmt: skip
    result = judged(made, "-c", "holdfast.yaml")
    cell = result.cells["new", "calm"]
    assert (cell["outcome"], cell["passes"]) == ("pass", 4)  # two prompts, asked for two rules each
    assert [t["prompt"] for t in cell["trials"]] == ["a", "a", "b", "b"]
    assert result.part["trials"] == 4
    assert any("new" in note and "every stored trial" in note for note in result.json["notes"])


# "a scenario not stored -> error `not recorded in this run`"
def test_3_judge_of_a_scenario_not_stored_is_an_error(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], [CALM]))
    made.run()
    made.write(contract([rule("source", value="source")], [CALM, DOWN]))
    result = judged(made, "-c", "holdfast.yaml")
    assert result.outcomes == {("source", "calm"): "pass", ("source", "down"): "error"}
    assert "not recorded" in result.cells["source", "down"]["reason"]
    assert result.code == 3


def test_3_judge_of_a_prompt_not_stored_is_an_error(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], [CALM]))
    made.run()
    made.write(contract([rule("source", value="source")], [CALM], prompts=("hello", "another")))
    result = judged(made, "-c", "holdfast.yaml")
    assert result.cell["outcome"] == "error"
    assert "not recorded" in result.cell["reason"]


def test_3_judge_refuses_a_scenario_whose_faults_changed(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], [DOWN]))
    made.run()
    other = {**DOWN, "tool_faults": [{"tool": "search", "mode": "empty"}]}
    made.write(contract([rule("source", value="source")], [other]))
    result = made.cli("judge", "1", "-c", "holdfast.yaml")
    assert result.code == 4
    assert "'down' changed" in result.err


@pytest.mark.parametrize("isolation", [("cell", "scenario"), ("scenario", "cell")])
def test_3_judge_across_isolations(project: MakeProject, isolation: tuple[str, str]) -> None:
    made = project(contract(RULES, [CALM, DOWN], isolation=isolation[0]))
    first = made.run()
    made.write(contract(RULES, [CALM, DOWN], isolation=isolation[1]))
    result = judged(made, "-c", "holdfast.yaml")
    assert result.outcomes == first.outcomes


def test_3_judge_compares_with_the_stored_control(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], [CALM, DOWN]))
    made.run()
    made.write(contract([rule("same", "behavior_unchanged")], [CALM, DOWN]))
    result = judged(made, "-c", "holdfast.yaml")
    assert result.outcomes["same", "calm"] == "pass"


# -- `holdfast report` ------------------------------------------------------------------------------
def test_3_report_shows_the_stored_run_again_without_the_agent(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    first = made.run()
    (made.folder / "agent.py").unlink()
    again = made.cli("report", "1", "--json")
    assert facts(again) == facts(first)
    assert again.json["score"] == first.json["score"]
    shown = made.cli("report", "1")
    assert f"resilience {first.json['score']:.2f}" in shown.out
    made.cli("report", "1", "-o", "a.html", "-o", "a.md", "-o", "a.xml", "-o", "a.json")
    assert json.loads(made.read("a.json"))["score"] == first.json["score"]
    for name in ("a.html", "a.md", "a.xml"):
        assert made.read(name), name


def test_3_judge_shows_prompts_and_probes_that_were_never_asked(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM], prompts=("a",)))
    made.run()
    made.write(contract([*RULES, rule("leak", value="x", probes=["never"])], [CALM], prompts=("other",)))
    shown = made.cli("judge", "1", "-c", "holdfast.yaml")
    assert shown.code == 3
    assert "not recorded" in shown.out
    assert "bug" not in shown.err


def test_3_judge_keeps_what_was_asked_of_the_run(project: MakeProject) -> None:
    made = project(contract([*RULES, rule("never", value="xyzzy", severity="low")], [CALM, DOWN]))
    first = made.run("--scenario", "calm", "--min-score", "40", "--replicas", "2")
    result = judged(made)
    assert (first.code, result.code) == (0, 0)
    assert facts(result) == facts(first)
    again = result.cells["never", "calm"]["trials"][0]["again"]
    assert made.cli(*again.split()[1:], "-q").code == 1


def test_3_the_command_for_a_borrowed_trial_shows_the_failure(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM]))
    made.run()
    made.write(contract([*RULES, rule("new", value="xyzzy", severity="critical")], [CALM]))
    failed = judged(made, "-c", "holdfast.yaml").cells["new", "calm"]["trials"][0]
    assert made.cli(*failed["again"].split()[1:], "-q").code == 1


def test_3_what_a_killed_judging_left_is_not_added_to(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM]))
    made.run()
    (rundir(made) / "verdicts-2.new").write_bytes(b'{"trial":"0123456789ab"}\n')
    assert judged(made).code == 0
    assert len((rundir(made) / "verdicts-2.jsonl").read_bytes().splitlines()) == 2
