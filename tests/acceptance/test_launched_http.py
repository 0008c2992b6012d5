"""HTTP agents that Holdfast starts: ports, readiness, isolation with spares and resets, and output."""

from __future__ import annotations

from typing import Any

from cli import CALM, MakeProject, Project, contract, rule
from plane_agents import ECHO, SCRIPTED, equip, quick, server

PID = """
import os, serves
serves.answer = lambda prompt: f"{os.getpid()} {os.environ['PORT']} {serves.asked}"
if __name__ == "__main__":
    serves.main()
"""
ANSWERS = [rule("answers", "completes")]


def made(project: MakeProject, agent: dict[str, Any], source: str = PID, **more: Any) -> Project:
    return equip(project(contract(ANSWERS, [CALM], agent=agent) | more, source), ECHO)


def answers(result: Any) -> list[list[str]]:
    assert result.code == 0, result.out + result.err
    return [trial["answer"].split() for trial in result.trials]


def test_a_server_beside_its_endpoint_is_started_and_its_model_calls_are_met(project: MakeProject) -> None:
    found = made(project, server(), "import serves\nserves.main()\n", models=SCRIPTED)
    result = quick(found)
    assert (result.code, result.trial["answer"]) == (0, "you said hello")
    assert result.trial["trace"]["calls"] == 1


def test_a_worker_without_a_reset_that_keeps_state_is_warned_of(project: MakeProject) -> None:
    found = made(project, server(isolation="worker"))
    result = quick(found)
    assert "Warning: No reset_endpoint configured." in result.err
    assert "stateful" in [one["code"] for one in result.json["warnings"]]


def test_verify_starts_the_agent_and_asks_it_once(project: MakeProject) -> None:
    found = made(project, server(spares=0), "import serves\nserves.main()\n", models=SCRIPTED)
    result = found.command("verify")
    assert result.code == 0, result.err
    assert "you said hello" in result.out
    assert len(found.lines("started.log")) == 1


def test_parameters_fill_its_section(project: MakeProject) -> None:
    source = "import os, serves\nserves.answer = lambda p: os.environ['SIZE']\nserves.main()\n"
    found = made(project, server(env={"SIZE": "{{ params.size }}"}), source, parallelism={"matrix": {"size": [1, 2]}})
    result = quick(found, "--no-preflight")
    assert sorted(t["answer"] for t in result.trials) == ["1", "2"]


def test_neither_the_start_nor_the_reset_is_in_the_measured_time(project: MakeProject) -> None:
    source = "import time, serves\ntime.sleep(0.7)\nserves.answer = str\nserves.main()\n"
    found = made(project, server(reset_function="resets:wait", spares=0), source)
    (found.folder / "resets.py").write_text("import time\ndef wait():\n    time.sleep(0.7)\n")
    assert quick(found, "--no-preflight").trial["latency_ms"] < 600
