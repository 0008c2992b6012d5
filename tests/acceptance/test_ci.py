"""`holdfast ci`: every part, the overall score, its verdict, and what becomes of it when the world breaks."""

from __future__ import annotations

import json
import shutil
import signal
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, finish, kill_group, rule, wait_until

from golden_words import Golden

RULES = [{"id": "sourced", "type": "contains", "value": "source"}, {"id": "hi", "type": "contains", "value": "says"}]
SLOW = """
import time


def search(query):
    return "a source says " + query


def ask(prompt):
    open("asked", "a").write(".")
    time.sleep(0.05)
    try:
        return search(prompt)
    except Exception as failure:
        return f"sorry, no source: {failure}"
"""


def spec(**more: Any) -> dict[str, Any]:
    """A file with a contract, mutations and chaos: `hi` fails where the tool does."""
    made = contract([rule("cites", value="source")], [CALM, DOWN], prompts=("one", "two"))
    parts = {
        "invariants": RULES,
        "mutations": {"types": ["noise", "prompt_injection"], "count": 4},
        "chaos": {"tool_faults": [{"tool": "search", "mode": "error"}]},
    }
    return {**made, **parts, **more}


def ci(made: Project, *args: str) -> Any:
    """The overall result as JSON."""
    return made.cli("ci", "--json", "--no-report", *args).json


def test_every_part_has_its_verdict_and_weights_are_renormalised(project: MakeProject) -> None:
    found = ci(project(spec()))
    parts = found["parts"]
    assert {name: part["score"] for name, part in parts.items()} == {
        "scenario": None,
        "contract": 100.0,
        "mutation": 100.0,
        "chaos": 50.0,
        "replay": None,
    }
    assert {name: round(part["share"], 3) for name, part in parts.items() if part["ran"]} == {
        "contract": 0.389,
        "mutation": 0.222,
        "chaos": 0.389,
    }
    assert (found["score"], found["exit_code"]) == (80.56, 1)
    assert parts["replay"]["skipped"].startswith("add replays: ")
    assert found["reasons"] == ["chaos: 1 cell failed"]


def test_failures_in_calm_that_the_chaos_score_does_not_count_are_told_apart(
    project: MakeProject, golden: Golden
) -> None:
    found = ci(project(spec(invariants=[*RULES, rule("never", value="no such word")])))["parts"]["chaos"]
    golden((found["said"], found["reasons"]))


def test_the_warnings_of_a_part_are_shown_everywhere(project: MakeProject) -> None:
    made = project({**spec(), "golden_prompts": ["one", "one"]})
    ran = made.cli("ci", "-o", "reports")
    (known,) = [
        one for one in made.cli("show", "last", "--json").json["warnings"] if one["code"].startswith("lint-rep")
    ]
    assert ran.out.count(f"warning: {known['text']}") == 1
    for name in ("report.html", "report.json", "report.md"):
        assert known["text"].partition("] ")[2].partition(";")[0] in (made.folder / "reports" / name).read_text()


def test_a_part_that_did_not_run_says_what_is_really_missing(project: MakeProject) -> None:
    made = {key: value for key, value in spec().items() if key not in ("invariants", "mutations", "chaos")}
    parts = ci(project(made))["parts"]
    assert "add golden_prompts" not in parts["mutation"]["skipped"]
    assert "invariants" in parts["mutation"]["skipped"]
    assert "golden_prompts" not in parts["chaos"]["skipped"]


def test_a_minimum_is_for_the_overall_score(project: MakeProject) -> None:
    made = project(spec())
    assert (ci(made, "--min-score", "80.56")["exit_code"], ci(made, "--min-score", "80.57")["exit_code"]) == (0, 1)
    critical = [RULES[0], {**RULES[1], "severity": "critical"}]
    made.write(spec(invariants=critical))
    found = ci(made, "--min-score", "1")
    assert (found["exit_code"], found["parts"]["chaos"]["passed"]) == (1, False)


def test_score_prints_the_number_and_exits_as_ci_does(project: MakeProject) -> None:
    made = project(spec())
    told = made.cli("score")
    assert (told.code, told.out, told.err) == (1, "80.56\n", "chaos: 1 cell failed\n")
    assert made.cli("score", "--exit-zero").code == 0


def test_a_folder_of_reports_agrees_with_the_verdict(project: MakeProject) -> None:
    made = project(spec())
    assert made.cli("ci", "-q", "-o", "out", "-o", "all.xml").code == 1
    parts = ("contract", "mutation", "chaos")
    wanted = {f"{part}.{suffix}" for part in parts for suffix in ("html", "json", "xml", "md", "sarif")}
    wanted |= {"report.html", "report.json", "report.md"}
    assert {path.name for path in (made.folder / "out").iterdir()} == wanted
    joined = ET.fromstring(made.read("all.xml"))
    assert (joined.get("failures"), joined.get("errors")) == ("2", "0")  # the cell, and the overall verdict
    assert made.cli("report", "latest", "-o", "all.sarif").code == 0
    *parted, overall = json.loads(made.read("all.sarif"))["runs"]
    assert (len(parted), [one["ruleId"] for one in overall["results"]]) == (3, ["overall"])
    page = made.read("out/report.html")
    assert all(f'href="{part}.html"' in page for part in parts)


def test_a_stored_run_is_shown_as_it_ended(project: MakeProject) -> None:
    made = project(spec())
    first = ci(made)
    assert made.cli("report", "latest", "--json").json == first
    assert "overall 80.56" in made.cli("show").out
    assert "✘ hi · chaos" in made.cli("show", "0001/chaos").out


def test_show_explains_the_failed_parts_as_ci_did(project: MakeProject) -> None:
    made = project(spec())
    ended, shown = made.cli("ci").out, made.cli("show").out
    assert shown.startswith("\n== chaos\n✘ hi · chaos")  # the parts that passed need no words
    assert shown.partition("✘ hi")[2] == ended.partition("✘ hi")[2]
    assert "✘ hi · chaos" not in made.cli("show", "-q").out


def test_kill_9_in_the_middle_and_resume_give_the_same_overall_score(project: MakeProject) -> None:
    made = project(spec(), SLOW)
    whole = ci(made)
    shutil.rmtree(made.folder / ".holdfast")
    (made.folder / "asked").unlink()
    process = made.start("ci", "--concurrency", "1")
    wait_until(lambda: len(made.read("asked")) > 7)
    under_way = made.cli("show").out
    assert ("RUNNING" in under_way, "INTERRUPTED" in under_way, "--resume" in under_way) == (True, False, False)
    kill_group(process)
    asked = len(made.read("asked"))
    assert "resume: holdfast ci --resume 0001" in made.cli("show").out
    assert len(made.cli("show", "--json").json["reasons"]) == 1
    resumed = ci(made, "--resume", "0001")
    drop = ("duration_s", "started", "warnings")  # that it was killed is a warning
    assert {k: v for k, v in resumed.items() if k not in drop} == {k: v for k, v in whole.items() if k not in drop}
    trials = sum(part["trials"] for part in whole["parts"].values())
    assert len(made.read("asked")) <= asked + trials + 1 - 5


def test_an_interrupt_stores_what_was_asked_and_exits_2(project: MakeProject) -> None:
    made = project(spec(), SLOW)
    process = made.start("ci", "--concurrency", "1")
    wait_until(lambda: len(made.read("asked")) > 7)
    process.send_signal(signal.SIGINT)
    ended = finish(process)
    assert (ended.code, "INTERRUPTED" in ended.out, "--resume 0001" in ended.out) == (2, True, True)
    asked = len(made.read("asked"))
    process = made.start("ci", "--concurrency", "1", "--resume", "0001")
    wait_until(lambda: len(made.read("asked")) > asked + 1)
    assert "RUNNING" in made.cli("show").out
    assert made.cli("show", "--json").json["exit_code"] == 2
    kill_group(process)
    assert "INTERRUPTED" in made.cli("show").out  # result the first time is not what it comes to now
    assert ci(made, "--resume", "1")["score"] == 80.56


def test_budgets_span_the_parts_and_nothing_left_out_is_green(project: MakeProject) -> None:
    found = ci(
        project(spec(chaos={"tool_faults": [{"tool": "search", "mode": "slow", "delay_ms": 1}]})), "--max-trials", "8"
    )
    assert (found["exit_code"], found["parts"]["chaos"]["skipped"]) == (5, "--max-trials is used up")
    assert sum(part["trials"] for part in found["parts"].values()) == 8


def test_a_rule_that_is_worse_than_in_the_baseline_fails_whatever_the_minimum(project: MakeProject) -> None:
    text = spec(mutations={"types": ["noise"], "count": 20})
    del text["chaos"]
    made = project(text)
    agent = made.read("agent.py")
    made.cli("ci", "-q")
    (made.folder / "agent.py").write_text(agent.replace("a source says ", "a source tells "))
    found = ci(made, "--min-score", "0", "--baseline", "last")
    assert found["exit_code"] == 1
    assert any((reason.startswith("mutation: hi ") and "run 0001: 22 of 22" in reason) for reason in found["reasons"])
    assert ci(made, "--min-score", "0")["exit_code"] == 0
    made.write(text, "other.yaml")
    assert "--baseline last" in ci(made, "-c", "other.yaml", "--baseline", "last")["notes"][0]
    told = made.cli("ci", "-c", "other.yaml", "--baseline", "0001/mutation")
    assert (told.code, "[runs-incomparable]" in told.err) == (4, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"scoring": {"weights": {"mutation": 0.9}}}, "scoring.weights"),
        ({"mutations": {"types": ["paraphrase"]}}, "paraphrase"),
        ({"chaos": {}}, "chaos"),
    ],
)
def test_what_is_wrong_with_any_part_is_told_before_the_agent_is_asked(
    project: MakeProject, more: dict[str, Any], said: str
) -> None:
    made = project(spec(**more), SLOW)
    told = made.cli("ci")
    assert (told.code, said in told.err, made.read("asked")) == (4, True, "")
    assert not (made.folder / ".holdfast" / "runs").exists() or not any((made.folder / ".holdfast/runs").iterdir())


def test_run_does_not_go_on_with_a_run_of_ci_and_says_what_does(project: MakeProject) -> None:
    made = project(spec())
    ci(made)
    for command in (("run",), ("contract", "run")):
        told = made.cli(*command, "--resume", "0001")
        assert (told.code, "holdfast ci --resume 0001" in told.err) == (4, True)


def test_a_task_beside_a_list_of_invariants_is_asked_by_nobody_and_refused(project: MakeProject) -> None:
    made = project(spec(task={"prompt": "do it"}))
    for command in (("run",), ("ci",), ("validate",)):
        told = made.cli(*command)
        assert (told.code, ("  task  " in told.err and "[conflict]" in told.err)) == (4, True)
