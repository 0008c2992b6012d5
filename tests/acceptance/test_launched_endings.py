"""Agents that end badly: each has a clear ending, nothing hangs, nothing is left, nothing reaches the next trial."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from cli import CALM, MakeProject, Project, contract, finish, rule, wait_until
from plane_agents import ASKS, ECHO, MARK, SCRIPTED, command, equip, marked, none_left, quick, run, server

ANSWERS = [rule("answers", "completes")]


def made(project: MakeProject, agent: dict[str, Any], source: str = "", **more: Any) -> Project:
    return equip(project(contract(ANSWERS, [CALM], agent=agent) | more, source), ECHO)


# -- agents that end in their trial -------------------------------------------------------------


FORKS = """
import os, subprocess, sys
subprocess.Popen(["sleep", "300"])                                  # a child
subprocess.Popen(["setsid", "sleep", "300"])                        # in a session of its own
subprocess.Popen("setsid sh -c 'sleep 300 & sleep 300' &", shell=True)   # and a daemon
print("left them")
"""


def test_whatever_it_forks_is_ended_with_it(project: MakeProject) -> None:
    found = made(project, command(), FORKS)
    result = run(found, "--replicas", "2", env={MARK: "forks"})
    assert {t["answer"].strip() for t in result.trials} == {"left them"}
    assert marked("forks") == []


# -- agents that go on after their trial ----------------------------------------------------------
LINGERS = """
import serves, talk, threading, time
def later(prompt):
    time.sleep(0.2)
    said = talk.ask("late " + prompt)
    open("late.log", "a").write(said + "\\n")
def answer(prompt):
    threading.Thread(target=later, args=(prompt,)).start()
    return "done with " + prompt
serves.answer = answer
serves.main()
"""


def test_calls_after_the_trial_get_503_and_are_billed_to_none(project: MakeProject) -> None:
    reset = "import time\ndef wait():\n    time.sleep(0.6)\n"  # the late call falls between two trials
    agent = server(isolation="worker", reset_function="resets:wait")
    spec = contract(ANSWERS, [CALM], prompts=("one", "two"), agent=agent, models=SCRIPTED)
    found = equip(project(spec, LINGERS), ECHO, resets=reset)
    result = quick(found, "--no-preflight")
    assert result.outcomes == {("answers", "calm"): "pass"}
    assert [t["trace"] for t in result.trials] == [None, None]
    assert found.lines("late.log")[:1] == ["model failed: 503"]


# -- the harness ends -------------------------------------------------------------------------------
KINDS = {
    "command": (command(), "open('began', 'w')\nimport time\ntime.sleep(300)\n"),
    "server": (
        server(),
        "import serves, time\n"
        "def answer(prompt):\n    open('began', 'w')\n    time.sleep(300)\n"
        "serves.answer = answer\nserves.main()\n",
    ),
    "worker": (
        server(isolation="worker"),
        "import subprocess, serves, time\n"
        "subprocess.Popen(['setsid', 'sleep', '300'])\n"
        "def answer(prompt):\n    open('began', 'w')\n    time.sleep(300)\n"
        "serves.answer = answer\nserves.main()\n",
    ),
}


def begun(project: MakeProject, kind: str, mark: str) -> tuple[Project, Any]:
    agent, source = KINDS[kind]
    found = made(project, agent, source)
    process = found.start("contract", "run", "--no-preflight", "--no-report", env={MARK: mark})
    wait_until(lambda: (found.folder / "began").exists())
    assert len(marked(mark)) >= 2
    return found, process


@pytest.mark.parametrize("kind", KINDS)
def test_kill_9_of_holdfast_leaves_no_orphan(project: MakeProject, kind: str) -> None:
    _, process = begun(project, kind, f"kill-{kind}")
    process.send_signal(signal.SIGKILL)  # to it alone, not to its group
    process.communicate(timeout=10)
    assert none_left(f"kill-{kind}"), marked(f"kill-{kind}")


@pytest.mark.parametrize("kind", ["command", "server"])
def test_ctrl_c_ends_with_2_and_leaves_no_orphan(project: MakeProject, kind: str) -> None:
    _, process = begun(project, kind, f"int-{kind}")
    process.send_signal(signal.SIGINT)
    result = finish(process, 10)
    assert result.code == 2
    assert none_left(f"int-{kind}", 0.5), marked(f"int-{kind}")


def test_ctrl_c_while_a_server_is_being_started_leaves_no_orphan(project: MakeProject) -> None:
    found = made(project, server(command="touch began; exec sleep 300"))
    process = found.start("contract", "run", "--no-report", env={MARK: "int-start"})
    wait_until(lambda: (found.folder / "began").exists())
    process.send_signal(signal.SIGINT)
    assert finish(process, 10).code == 2
    assert none_left("int-start", 0.5)


def test_a_stored_run_is_judged_and_shown_after_the_agent_and_its_script_are_gone(project: MakeProject) -> None:
    found = equip(project(contract(ANSWERS, [CALM], agent=command(), models=SCRIPTED), ASKS), ECHO)
    first = quick(found)
    for name in ("model.yaml", "agent.py", "talk.py"):
        (found.folder / name).unlink()
    assert found.cli("judge", "1", "--json").outcomes == first.outcomes
    assert found.cli("report", "1", "--json").outcomes == first.outcomes
    again = found.cli("contract", "run", "--resume", "1")
    assert (again.code, "[run-changed]" in again.err) == (4, True)
