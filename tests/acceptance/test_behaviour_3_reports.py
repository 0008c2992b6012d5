"""What a run shows and writes: reports, --dry-run, --trial, --fail-fast, colour, hostile answers."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from xml.etree import ElementTree as ET

import pytest
from cli import CALM, DOWN, HOLDFAST, MakeProject, Project, contract, rule, tool_fault, verdict_line

from golden_words import Golden
from page_documents import documents

NO_TOOLS = {"type": "python", "endpoint": "agent:ask"}
RULES = [rule("source", value="a source says"), rule("any", "regex", pattern=".")]
ASKED = """
def search(query):
    return "a source says " + query

def ask(prompt):
    with open("asked", "a") as file:
        file.write(prompt + "\\n")
    return search(prompt)
"""
TOUCHES = "open('imported', 'w').close()\n" + ASKED


# "`-o` may be given several times, also with `--json`"
def test_3_o_may_be_given_several_times_also_with_json(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    result = made.run("-o", "a.html", "-o", "deep/er/b.json", "-o", "c.xml", "-o", "d.md", "-o", "e.json")
    assert result.json["score"] == 75.0
    assert json.loads(made.read("deep/er/b.json")) == json.loads(made.read("e.json")) == result.json
    assert "<!doctype html>" in made.read("a.html").lower()
    suites = ET.fromstring(made.read("c.xml"))
    assert (suites.get("tests"), suites.get("failures")) == ("4", "1")
    assert "75.00" in made.read("d.md")


# "unknown suffix refused before any agent call"
@pytest.mark.parametrize("name", ["report.pdf", "report", "report.htm"])
def test_3_an_unknown_suffix_is_refused_before_any_agent_call(project: MakeProject, name: str) -> None:
    made = project(contract(RULES), TOUCHES)
    result = made.show("-o", "fine.json", "-o", name)
    assert result.code == 4
    assert "[format-unknown]" in result.err
    assert not (made.folder / "imported").exists()
    assert not (made.folder / ".holdfast").exists()


def test_3_a_report_that_cannot_be_written_is_told_and_the_run_is_kept(project: MakeProject, golden: Golden) -> None:
    made = project(contract(RULES))
    (made.folder / "taken").write_text("a file, not a folder")
    result = made.show("-o", "taken/report.json")
    assert result.code == 3
    golden([line for line in result.err.splitlines() if line.startswith("error:")])
    assert verdict_line(result.out).startswith("PASS ")
    assert made.cli("report", "1", "--json").json["score"] == 100.0


# GITHUB_STEP_SUMMARY is appended to
def test_3_github_step_summary_is_appended_to(project: MakeProject) -> None:
    made = project(contract(RULES))
    path = made.folder / "summary.md"
    path.write_text("what was there\n")
    made.show(env={"GITHUB_STEP_SUMMARY": str(path)})
    first = path.read_text()
    assert first.startswith("what was there\n")
    assert "100.00" in first
    made.show(env={"GITHUB_STEP_SUMMARY": str(path)})
    assert path.read_text().startswith(first)
    assert len(path.read_text()) > len(first)


def test_3_a_step_summary_that_cannot_be_written_does_not_change_the_verdict(project: MakeProject) -> None:
    made = project(contract(RULES))
    result = made.show(env={"GITHUB_STEP_SUMMARY": "/no/such/folder/summary.md"})
    assert result.code == 0
    assert "summary.md" in result.err


# "`--dry-run` counts trials, control and judge calls" and runs nothing
def test_3_dry_run_counts_and_runs_nothing(project: MakeProject) -> None:
    rules = [*RULES, rule("same", "behavior_unchanged")]
    made = project(contract(rules, [CALM, DOWN], prompts=("a", "b"), replicas=3), TOUCHES)
    result = made.show("--dry-run")
    assert result.code == 0
    assert result.out.startswith("36 trials for 3 rules × ")
    counted = made.run("--dry-run").json
    assert (counted["trials"], counted["cells"], counted["controls"], counted["judge_calls"]) == (36, 6, 2, 0)
    assert not (made.folder / "imported").exists()
    assert not (made.folder / ".holdfast").exists()


# "--trial reproduces the same outcome, faults and answer"
def test_3_trial_reproduces_the_same_outcome_faults_and_answer(project: MakeProject) -> None:
    agent = """
def search(query):
    return {"price": 127.45}

def ask(prompt):
    said = []
    for n in range(6):
        try:
            said.append(str(search(n)))
        except Exception as failure:
            said.append(str(failure))
    return " ".join(said)
"""
    weather = {"name": "odd", "tool_faults": [{"tool": "search", "mode": "wrong_value", "probability": 0.5},
                                              {"tool": "search", "mode": "error", "probability": 0.3}]}  # fmt: skip
    made = project(contract([rule("true", "regex", pattern="^(\\{'price': 127.45\\} ?)+$")], [CALM, weather],
                            prompts=("a", "b", "c")), agent)  # fmt: skip
    result = made.run("--seed", "3")
    failed = [trial for trial in result.trials if trial["outcome"] == "fail"]
    assert failed
    for trial in failed:
        words = trial["again"].split()
        assert words[:3] == ["holdfast", "contract", "run"]
        again = made.run(*words[3:])
        (repeated,) = again.trials
        keys = ("id", "prompt", "answer", "outcome", "reason", "faults")
        assert {key: repeated[key] for key in keys} == {key: trial[key] for key in keys}


def test_3_trial_takes_the_beginning_of_an_id(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    id = made.run().trials[0]["id"]
    (only,) = made.run("--trial", id[:6]).trials
    assert only["id"] == id
    assert made.run("--trial", id[:2]).code == 4


def test_3_the_again_command_names_a_file_that_is_not_the_default(project: MakeProject) -> None:
    made = project(contract(RULES))
    made.write(contract([rule("no", value="unicorn")]), "other.yaml")
    trial = made.run("-c", "other.yaml", "--replicas", "2").trials[1]
    assert "-c other.yaml" in trial["again"]
    (again,) = made.run(*trial["again"].split()[3:]).trials
    assert (again["id"], again["replica"]) == (trial["id"], 1)


# "--fail-fast stops early"
def test_3_fail_fast_stops_early(project: MakeProject) -> None:
    prompts = tuple(f"p{i}" for i in range(12))
    made = project(contract([rule("no", "regex", pattern="p[01]$")], prompts=prompts), ASKED)
    result = made.run("--fail-fast", "--concurrency", "1", "--no-preflight")
    assert result.code == 1
    assert made.lines("asked") == ["p0", "p1", "p2"]
    assert made.run("--concurrency", "1", "--no-preflight").part["trials"] == 12


# In a pipe: no colour, no redraw, no line for a cell that passed, the same summary.
@pytest.mark.parametrize(("option", "cells"), [((), 0), (("-v",), 4)])
def test_3_a_pipe_gets_no_escape_codes_and_its_cells_with_verbose(
    project: MakeProject, option: tuple[str, ...], cells: int
) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    result = made.command("contract", "run", *option, env={"TERM": "xterm-256color"})
    assert "\x1b" not in result.out + result.err
    assert "\r" not in result.out
    lines = result.out.splitlines()
    assert sum(line.startswith(("✔ pass ", "✘ fail ")) for line in lines) == cells
    assert "resilience 75.00" in verdict_line(result.out)


def in_a_terminal(made: Project, *args: str, **env: str) -> tuple[str, str]:
    """What a terminal gets on stdout, and what a file gets on stderr."""
    ours, theirs = pty.openpty()
    path = made.folder / "stderr.txt"
    with open(path, "wb") as errors:
        process = subprocess.Popen(
            [HOLDFAST, "contract", "run", "--no-report", *args], cwd=made.folder, stdout=theirs, stderr=errors,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **env}
        )  # fmt: skip
    os.close(theirs)
    data, end = b"", time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            data += piece
        elif process.poll() is not None:
            break
    process.wait(timeout=10)
    os.close(ours)
    return data.decode("utf-8", "replace"), path.read_text()


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_3_a_terminal_gets_colour_and_no_color_takes_it_away(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    coloured, _ = in_a_terminal(made)
    assert [code for code in COLOUR.findall(coloured) if code not in ("\x1b[0m", "\x1b[m")]
    plain, _ = in_a_terminal(made, NO_COLOR="1")
    assert [code for code in COLOUR.findall(plain) if code not in ("\x1b[0m", "\x1b[m")] == []
    assert "resilience 75.00" in plain
    dumb, _ = in_a_terminal(made, TERM="dumb")
    assert "\x1b" not in dumb


def test_3_a_terminals_warnings_reach_stderr_when_it_goes_elsewhere(project: MakeProject) -> None:
    agent = "calls = 0\ndef ask(prompt):\n    global calls\n    calls += 1\n    return f'answer {calls}'\n"
    made = project(contract([rule("any", value="answer")], agent={**NO_TOOLS, "isolation": "worker"}), agent)
    _, errors = in_a_terminal(made)
    assert errors.count("Warning: No reset_endpoint configured.") == 1


# "Everything rendered is escaped for its medium"
HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 \x00 \u202egnp.exe </script><script>alert(1)</script> <img src=x onerror=alert(2)> "
    "]]> | `x` [a](javascript:alert(3)) &amp; end"
)


def test_3_hostile_answers_reach_no_output_unescaped(project: MakeProject) -> None:
    agent = f"""
def search(query):
    return {HOSTILE!r}

def ask(prompt):
    print({HOSTILE!r})
    return search(prompt)
"""
    weather = [CALM, tool_fault("malicious_response", payload=HOSTILE)]
    made = project(contract([rule("no", value="unicorn")], weather), agent)
    result = made.command("contract", "run", "-v", "-o", "r.html", "-o", "r.md", "-o", "r.xml", "-o", "r.json")
    assert result.code == 1
    for stream in (result.out, result.err, made.read("r.md")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", stream)
    assert "\\x1b[31mred" in result.out
    page = made.read("r.html")
    assert "alert(1)" not in page.replace("&lt;", "<") or "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "alert(1)" in json.dumps(documents(page)), "it is there, as data"
    assert "Content-Security-Policy" in page
    tree = ET.fromstring(made.read("r.xml"))
    assert [e.tag for e in tree.iter() if e.tag in ("script", "img")] == []
    assert "<script>" not in made.read("r.md")
    answer = json.loads(made.read("r.json"))["parts"]["contract"]["cells"][0]["trials"][0]["answer"]
    assert answer.startswith("\x1b[31mred")
    assert "\x1b" not in made.read("r.json")


BLIP = """
import os

def ask(prompt):
    if "held" in prompt and os.environ["HOLDFAST_REPLICA"] == "1":
        return "a blip"
    return "always wrong" if "bad" in prompt else "a source says so"
"""


# what is shown is what decided: with a majority, a prompt that held may have a failed replica
def test_3_the_failure_shown_is_of_a_prompt_that_failed(project: MakeProject) -> None:
    more = {"golden_prompts": ["held", "bad"], "replicas": 3, "scoring": {"replica_aggregation": "majority"}}
    made = project(contract(RULES[:1], agent=NO_TOOLS, **more), BLIP)
    result = made.show("-o", "r.md")
    for text in (result.out, made.read("r.md")):
        assert re.findall(r"answered +(.+)", text) == ["always wrong"]
