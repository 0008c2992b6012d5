"""One verdict, told the same everywhere: whatever happens to reports, files and signals beside it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from cli import (
    CALM,
    DOWN,
    HOLDFAST,
    MakeProject,
    Project,
    Serve,
    contract,
    finish,
    python,
    rule,
    rundir,
    verdict_line,
    wait_until,
)

RULES = [rule("cites", value="source")]
FAILING = [rule("cites", value="nothing of the kind")]
SLOW = "import time\n\ndef ask(prompt):\n    open('begun', 'w').close()\n    time.sleep(30)\n"


@pytest.mark.parametrize(("rules", "code", "word"), [(RULES, 0, "PASS"), (FAILING, 1, "FAIL")])
def test_a_page_that_cannot_be_written_hides_no_verdict(
    project: MakeProject, rules: list[dict[str, object]], code: int, word: str
) -> None:
    made = project(contract(rules))
    told = subprocess.run(
        [HOLDFAST, "contract", "run"],
        cwd=made.folder,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, 24_000)),
    )
    assert told.returncode == code, told.stderr
    assert "warning: " in told.stderr
    assert ".holdfast/runs/0001/report.html: " in told.stderr
    assert verdict_line(told.stdout).startswith(f"{word}  ")
    assert "      .holdfast/runs/0001 · " in told.stdout


def test_a_report_that_was_asked_for_and_is_missing_is_no_success(project: MakeProject) -> None:
    made = project(contract(FAILING))
    (made.folder / "taken").write_text("")
    told = made.show("-o", "taken/report.json", "-o", "other.json")
    assert (told.code, verdict_line(told.out).split()[0]) == (1, "FAIL")
    assert "error: cannot write taken/report.json" in told.err
    assert json.loads(made.read("other.json"))["exit_code"] == 1


@pytest.mark.parametrize("size", [0, 100, 400, 1500, 4000, 8000])
def test_a_full_disk_is_one_clear_error(project: MakeProject, size: int) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    told = subprocess.run(
        [HOLDFAST, "contract", "run"],
        cwd=made.folder,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    assert "Traceback" not in told.stdout + told.stderr
    assert told.returncode in ({3} if size < 1500 else {0, 3}), told.stderr  # what fits is a matter of the machine
    assert "File too large" in told.stderr


def test_a_lost_terminal_is_an_interrupt_like_others(project: MakeProject) -> None:
    made = project(contract(RULES, agent=python(tools=[])), SLOW)
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a program takes over what its starter ignores: nohup
    try:
        process = made.start("contract", "run", "--no-preflight")
    finally:
        signal.signal(signal.SIGHUP, ignored)
    wait_until((made.folder / "begun").exists)
    os.kill(process.pid, signal.SIGHUP)
    told = finish(process)
    assert (told.code, verdict_line(told.out).split()[0]) == (2, "INTERRUPTED"), told.err


def judged(votes: int) -> dict[str, object]:
    return rule("tone", "llm_as_judge", model="judge", criteria="polite", votes=votes)


def test_a_dry_run_counts_judge_calls(project: MakeProject) -> None:
    spec = contract([judged(3), judged(1) | {"id": "other", "when": "no_chaos"}, *RULES], [CALM, DOWN], replicas=2)
    made = project(spec | {"models": {"judge": {"script": "judge.yaml"}}})
    (made.folder / "judge.yaml").write_text("replies: [{text: '{\"score\": 1}'}]\n")
    told = made.run("--dry-run")
    assert told.json["judge_calls"] == 3 * 2 * 2 + 1 * 2
    assert "14 judge calls" in made.show("--dry-run").out
    assert "0 judge calls" in project(contract(RULES)).show("--dry-run").out


def test_judging_says_whose_rules_it_used_and_leaves_no_page_that_says_otherwise(project: MakeProject) -> None:
    made = project(contract(RULES))
    assert made.show().code == 0
    unchanged = made.cli("judge", "1")
    assert "has changed since" not in unchanged.out
    made.write(contract(FAILING))
    told = made.cli("judge", "1")
    assert (told.code, ": holdfast judge 0001 -c holdfast.yaml" in told.out) == (0, True)
    anew = made.cli("judge", "1", "-c", "holdfast.yaml", "--json")
    assert (anew.code, anew.json["judged_from"].split()[0::7]) == (1, ["0001,", "holdfast.yaml"])
    assert "nothing of the kind" in (rundir(made) / "report-judged-4.html").read_text()
    assert "nothing of the kind" not in (rundir(made) / "report.html").read_text(), "it is the page of the run itself"


def test_an_inline_agent_that_leaves_its_folder_takes_nothing_along(tmp_path: Path) -> None:
    agent = "import os\n\ndef ask(prompt):\n    os.chdir('/')\n    return 'a source'\n"
    made = Project(tmp_path / "p", contract(RULES, agent=python(tools=[], isolation="inline")), agent)
    told = made.command("contract", "run", "-o", "out.json")
    assert told.code == 0, told.err
    assert "      .holdfast/runs/0001/report.html · " in told.out
    assert json.loads(made.read("out.json"))["passed"]
    assert made.command("report", "1").code == 0


def test_a_page_in_place_of_an_answer_is_a_warning_at_preflight(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda _: (200, "\n<!DOCTYPE html><html><form>source</form></html>"))
    told = project(contract(RULES, agent=server.section())).show()
    assert told.err.count("HTML page") == 1
    fine = serve(lambda _: (200, '{"output": "a source, in <html>"}'))
    assert "HTML page" not in project(contract(RULES, agent=fine.section())).show().err
