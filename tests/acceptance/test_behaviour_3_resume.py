"""Runs that are interrupted, killed, taken up again and judged anew: behaviour.md 3, exit 2, and design.md's store."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, facts, finish, kill_group, rule, rundir, unseal, wait_until

from holdfast.model.codec import RUN_DIRECTORY

SLOW = """
import time

def search(query):
    return "a source says " + query

def ask(prompt):
    with open("asked", "a") as file:
        file.write(prompt + "\\n")
    time.sleep(0.05)
    try:
        return search(prompt)
    except Exception as failure:
        return f"sorry, no source: {failure}"
"""
PROMPTS = tuple(f"p{n:02}" for n in range(10))
RULES = [rule("source", value="source", severity="critical"), rule("says", value="says", severity="high")]
TRIALS = len(RULES) * 2 * len(PROMPTS)


def slow_spec(**more: Any) -> dict[str, Any]:
    return contract(RULES, [CALM, DOWN], prompts=PROMPTS, **more)


def seen(made: Project) -> int:
    return len(made.stored("observations-0.jsonl"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The cells and the score.json of a run that nothing disturbed."""
    made = Project(tmp_path_factory.mktemp("whole") / "project", slow_spec(), SLOW)
    result = made.run("--concurrency", "4")
    return facts(result), made.stored("score.json")


# "2 interrupted": Ctrl-C stores, summarises and exits 2
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_3_exit_2_a_signal_in_the_middle_stores_summarises_and_can_be_resumed(
    project: MakeProject, whole: tuple[Any, Any], number: signal.Signals
) -> None:
    made = project(slow_spec(), SLOW)
    process = made.start("contract", "run", "--concurrency", "2")
    wait_until(lambda: seen(made) >= 4)
    process.send_signal(number)
    result = finish(process)
    assert result.code == 2
    assert "INTERRUPTED" in result.out
    assert "judged" in result.out
    assert "Traceback" not in result.err
    assert 4 <= seen(made) < TRIALS
    assert made.stored("score.json")[0]["exit_code"] == 2
    assert (rundir(made) / "report.html").exists()
    resumed = made.run("--resume", "0001", "--concurrency", "4")
    assert (facts(resumed), made.stored("score.json")) == whole
    assert resumed.json["complete"] is True


def test_3_exit_2_with_json_is_still_one_document(project: MakeProject) -> None:
    made = project(slow_spec(), SLOW)
    process = made.start("contract", "run", "--json", "--concurrency", "2")
    wait_until(lambda: seen(made) >= 4)
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert (result.code, result.json["exit_code"], result.json["complete"]) == (2, 2, False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_3_exit_2_while_the_agent_is_still_being_imported(project: MakeProject, number: signal.Signals) -> None:
    agent = "import time\nopen('importing', 'w').close()\ntime.sleep(30)\n"
    made = project(slow_spec(), agent)
    process = made.start("contract", "run")
    wait_until(lambda: (made.folder / "importing").exists())
    process.send_signal(number)
    result = finish(process)
    assert result.code == 2
    assert "0 of 4 cells judged" in result.out


def test_3_a_signal_leaves_no_process_behind(project: MakeProject) -> None:
    agent = "import os, time\ndef ask(prompt):\n    open('pid', 'a').write(f'{os.getpid()}\\n')\n    time.sleep(60)\n"
    section = {"type": "python", "endpoint": "agent:ask"}
    made = project(contract([rule("r", "completes")], agent=section), agent)
    process = made.start("contract", "run", "--no-preflight")
    wait_until(lambda: made.read("pid").endswith("\n"))
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 2
    for pid in made.lines("pid"):
        wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), 5)  # type: ignore[misc]


# kill -9 "loses at most trials in flight"; "`--resume` runs what is missing"
def test_3_kill_9_loses_at_most_the_trials_in_flight(project: MakeProject, whole: tuple[Any, Any]) -> None:
    made = project(slow_spec(), SLOW)
    process = made.start("contract", "run", "--concurrency", "2")
    wait_until(lambda: seen(made) >= 6)
    kill_group(process)
    stored, asked = seen(made), len(made.lines("asked"))
    assert asked - stored <= 2
    resumed = made.run("--resume", "1", "--concurrency", "4")
    assert (facts(resumed), made.stored("score.json")) == whole
    assert len(made.lines("asked")) == asked + TRIALS + 1 - stored  # one is the preflight


def test_3_kill_9_of_a_run_that_was_taken_up_makes_no_forgery_of_it(
    project: MakeProject, whole: tuple[Any, Any]
) -> None:
    made = project(slow_spec(), SLOW)
    first = made.start("contract", "run", "--concurrency", "2")
    wait_until(lambda: seen(made) >= 3)
    first.send_signal(signal.SIGINT)
    assert finish(first).code == 2
    sealed = seen(made)
    second = made.start("contract", "run", "--resume", "0001", "--concurrency", "2")
    wait_until(lambda: seen(made) > sealed)
    kill_group(second)
    assert "INTERRUPTED" in made.cli("show").out
    resumed = made.run("--resume", "1", "--concurrency", "4")
    assert (facts(resumed), made.stored("score.json")) == whole


def shortened(made: Project, name: str, keep: int, torn: bytes = b"") -> None:
    """Cuts a file of the run after so many lines, and leaves the beginning of another, as kill -9 does: no seal."""
    path = rundir(made) / name
    unseal(made)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:keep]) + torn)


# "a torn last line is dropped"
@pytest.mark.parametrize("name", ["observations-0.jsonl", "verdicts-1.jsonl", "trials.jsonl"])
def test_3_a_torn_last_line_is_dropped_and_its_trial_run_or_judged_again(
    project: MakeProject, whole: tuple[Any, Any], name: str
) -> None:
    made = project(slow_spec(), SLOW)
    made.run("--concurrency", "4")
    shortened(made, "observations-0.jsonl", 12, b'{"trial":"0123' if name.startswith("obs") else b"")
    if not name.startswith("obs"):
        shortened(made, name, 9, b'{"trial":"0123')
    resumed = made.run("--resume", "1", "--concurrency", "4")
    assert (facts(resumed), made.stored("score.json")) == whole
    shown = made.cli("report", "1", "--json")
    assert facts(shown) == whole[0]


def test_3_an_observation_without_its_verdict_is_judged_not_run_again(
    project: MakeProject, whole: tuple[Any, Any]
) -> None:
    made = project(slow_spec(), SLOW)
    made.run("--concurrency", "4")
    asked = len(made.lines("asked"))
    shortened(made, "verdicts-1.jsonl", 5)
    resumed = made.run("--resume", "1")
    assert (facts(resumed), made.stored("score.json")) == whole
    assert len(made.lines("asked")) == asked


# "resume of a finished run runs nothing"
def test_3_resume_of_a_finished_run_runs_nothing(project: MakeProject, whole: tuple[Any, Any]) -> None:
    made = project(slow_spec(), SLOW)
    made.run("--concurrency", "4")
    asked = len(made.lines("asked"))
    resumed = made.run("--resume", "0001")
    assert len(made.lines("asked")) == asked
    assert (facts(resumed), made.stored("score.json")) == whole


def test_3_resume_keeps_the_options_of_the_run(project: MakeProject) -> None:
    made = project(slow_spec(), SLOW)
    first = made.run(
        "--seed", "9", "--replicas", "2", "--scenario", "calm", "--invariant", "says", "--concurrency", "8"
    )
    shortened(made, "observations-0.jsonl", 3)
    resumed = made.run("--resume", "1", "--concurrency", "8")
    assert facts(resumed) == facts(first)
    assert resumed.json["seed"] == 9


def test_3_a_trial_that_our_side_broke_is_run_again_on_resume(project: MakeProject) -> None:
    agent = (
        "import os\ndef reset():\n    if not os.path.exists('ready'):\n        raise OSError('not ready')\n\n"
        "def ask(prompt):\n    return 'good'\n"
    )
    section = {"type": "python", "endpoint": "agent:ask", "reset_function": "agent:reset"}
    made = project(contract([rule("good", value="good")], agent=section, advanced={"retries": 0}), agent)
    assert made.run("--no-preflight").code == 3
    (made.folder / "ready").touch()
    resumed = made.run("--resume", "1", "--no-preflight")
    assert (resumed.code, resumed.cell["outcome"], resumed.cell["errors"]) == (0, "pass", 0)
    assert facts(made.cli("report", "1", "--json")) == facts(resumed)


# "another spec or agent digest is refused without `--force`"
def test_3_resume_refuses_a_changed_agent_without_force(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")]))
    made.run()
    agent = made.folder / "agent.py"
    agent.write_text(agent.read_text() + "\n# changed\n")
    refused = made.cli("contract", "run", "--resume", "1")
    assert refused.code == 4
    assert "[run-changed]" in refused.err
    assert "--force" in refused.err
    forced = made.cli("contract", "run", "--resume", "1", "--force", "--json")
    assert forced.code == 0
    assert "run-mixed" in [warning["code"] for warning in forced.json["warnings"]]
    stored = made.cli("show", "1", "--json")
    assert "run-mixed" in [warning["code"] for warning in stored.json["warnings"]]


def test_3_resume_refuses_a_changed_spec_without_force(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")]))
    made.run()
    made.write(contract([rule("source", value="source"), rule("more", value="says")]), "holdfast.yaml")
    resumed = made.cli("contract", "run", "--resume", "1", "--json")
    assert resumed.code == 0, "the stored spec is used unless -c is given"
    assert "spec-edited" in [warning["code"] for warning in resumed.json["warnings"]]
    refused = made.cli("contract", "run", "--resume", "1", "-c", "holdfast.yaml")
    assert refused.code == 4
    assert "the spec changed" in refused.err
    forced = made.run("--resume", "1", "-c", "holdfast.yaml", "--force")
    assert forced.outcomes == {("source", "calm"): "pass", ("more", "calm"): "pass"}


def test_3_a_forced_resume_leaves_out_what_is_not_in_the_new_spec(project: MakeProject) -> None:
    made = project(contract([rule("source", value="source")], prompts=("a", "b")))
    made.run()
    other = {**DOWN, "tool_faults": [{"tool": "search", "mode": "empty"}]}
    made.write(contract([rule("source", value="source")], [CALM, other], prompts=("b", "c")))
    forced = made.run("--resume", "1", "-c", "holdfast.yaml", "--force", "--allow-vacuous")
    assert {key: len(cell["trials"]) for key, cell in forced.cells.items()} == {
        ("source", "calm"): 2,
        ("source", "down"): 2,
    }
    assert [t["prompt"] for t in forced.cells["source", "calm"]["trials"]] == ["b", "c"]


# Two processes on one run
def test_3_two_processes_on_one_run_are_refused(project: MakeProject) -> None:
    made = project(slow_spec(), SLOW)
    process = made.start("contract", "run", "--concurrency", "1")
    try:
        wait_until(lambda: seen(made) >= 2)
        refused = made.cli("contract", "run", "--resume", "1")
        assert refused.code == 4
        assert "[run-busy]" in refused.err
        assert made.cli("judge", "1").code == 4
    finally:
        kill_group(process)
    assert made.run("--resume", "1", "--concurrency", "4").json["complete"] is True


def test_3_two_runs_at_once_have_folders_of_their_own(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM]))
    processes = [made.start("contract", "run", "--no-report") for _ in range(3)]
    assert [finish(process).code for process in processes] == [0, 0, 0]
    assert sorted(p.name for p in (made.folder / ".holdfast/runs").iterdir()) == ["0001", "0002", "0003"]


# "an unfinished run is judged as far as it goes, and says so"
def test_3_an_unfinished_run_is_reported_and_judged_as_far_as_it_goes(project: MakeProject) -> None:
    made = project(slow_spec(), SLOW)
    process = made.start("contract", "run", "--concurrency", "2")
    wait_until(lambda: seen(made) >= 6)
    kill_group(process)
    shown = made.cli("report", "1")
    assert "--resume 0001" in shown.out
    judged = made.cli("judge", "1", "--json")
    assert any("unfinished" in note for note in judged.json["notes"])
    assert judged.json["passed"] is False


# design.md: "`.holdfast/.gitignore` holds `*`", what lies in the folder
def test_3_the_run_directory_holds_what_the_design_says(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    made.show()
    assert made.read(".holdfast/.gitignore") == "*\n"
    names = {path.name for path in rundir(made).iterdir()}
    assert names >= {"run.json", "spec.yaml", "trials.jsonl", "observations-0.jsonl", "verdicts-1.jsonl"}
    assert names >= {"score.json", "report.html", "lock"}
    (manifest,) = made.stored("run.json")
    assert manifest["format"] == RUN_DIRECTORY
    assert manifest["spec_digest"]
    assert manifest["agent_digest"]
    assert (rundir(made) / "spec.yaml").read_text() == made.read("holdfast.yaml")


def test_3_no_report_leaves_the_page_out(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM]))
    made.show("--no-report")
    assert not (rundir(made) / "report.html").exists()


def test_an_edited_module_that_the_agent_imports_refuses_resume_and_is_named(project: MakeProject) -> None:
    made = project(contract([rule("r", value="source")], [CALM], agent={"type": "python", "endpoint": "agent:ask"}))
    (made.folder / "agent.py").write_text("from words import answer\n\n\ndef ask(prompt):\n    return answer()\n")
    (made.folder / "words.py").write_text("def answer():\n    return 'a source'\n")
    assert made.run().code == 0
    (made.folder / "words.py").write_text("def answer():\n    return 'nothing'\n")
    refused = made.run("--resume", "0001")
    assert "(words.py changed)" in refused.out
    assert refused.code == 4
    assert made.run("--resume", "0001", "--force").code == 0
