"""behaviour.md 2: isolation of the agent, and the reset before every trial."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from cli import Asked, MakeProject, Reply, Serve, contract, python, rule, says

COUNTING = """
import os
calls = 0

def search(query):
    return query

def ask(prompt):
    global calls
    calls += 1
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return f"call {calls}"
"""
RESETTING = (
    COUNTING
    + """
def reset():
    global calls
    calls = 0
    with open("resets", "a") as file:
        file.write(f"{os.getpid()}\\n")
"""
)
FIRST = [rule("first", "regex", pattern="^call 1$")]
THREE = ("a", "b", "c")


# "fresh (default): Python agents in a new process per trial"
def test_2_fresh_is_the_default_a_new_process_per_trial(project: MakeProject) -> None:
    made = project(contract(FIRST, prompts=THREE), COUNTING)
    result = made.run()
    pids = made.lines("pids")
    assert result.cell["outcome"] == "pass"
    assert len(pids) == len(set(pids)) == 3 + 1  # three trials and the preflight
    assert result.json["kept_apart"].startswith("fresh process each")


# "worker: one per slot"
def test_2_worker_keeps_one_process_per_slot(project: MakeProject) -> None:
    made = project(contract(FIRST, prompts=THREE, agent=python(isolation="worker")), COUNTING)
    result = made.run("--concurrency", "1", "--no-preflight")
    assert len(set(made.lines("pids"))) == 1
    assert [t["answer"] for t in result.trials] == ["call 1", "call 2", "call 3"]
    assert "process per slot" in result.json["kept_apart"]


# "inline: Python only, in our process"
def test_2_inline_runs_in_the_process_of_the_command(project: MakeProject) -> None:
    made = project(contract(FIRST, prompts=THREE, agent=python(isolation="inline")), COUNTING)
    python_host = made.start("contract", "run", "--no-report", "--no-preflight")
    python_host.communicate(timeout=30)
    assert set(made.lines("pids")) == {str(python_host.pid)}
    (seen,) = made.stored("ended.json")
    assert [note["code"] for note in seen["background"]] == ["agent-start"]
    assert "inside Holdfast's own process" in made.cli("report", "1", "-v").out


def test_2_inline_stores_long_answers_when_the_spec_lies_elsewhere(project: MakeProject) -> None:
    made = project(contract([rule("long", value="x" * 50)]))
    inside = made.folder / "inner"
    inside.mkdir()
    (inside / "talker.py").write_text("def ask(prompt):\n    return 'x' * 20_000\n")
    spec = contract([rule("long", value="x" * 50)], agent={**python(isolation="inline"), "endpoint": "talker:ask"})
    del spec["agent"]["tools"]
    made.write(spec, "inner/other.yaml")
    result = made.command("contract", "run", "--json", "-c", "inner/other.yaml")
    assert result.code == 0, result.err
    assert len(result.trial["answer"]) == 20_000


# "Where forking is unsafe, fresh starts a new interpreter and says the cost."
def test_2_where_forking_is_unsafe_fresh_starts_new_interpreters_and_says_the_cost(project: MakeProject) -> None:
    agent = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" + COUNTING
    made = project(contract(FIRST, prompts=("a", "b")), agent)
    result = made.run()
    assert result.cell["outcome"] == "pass"
    assert len(set(made.lines("pids"))) == 3
    assert any("forking is unsafe" in note and "ms each" in note for note in result.json["notes"])


# "Reset: if configured it is called before every trial, in every isolation."
@pytest.mark.parametrize("isolation", ["fresh", "worker"])
def test_2_reset_function_is_called_before_every_trial_in_the_agents_process(
    project: MakeProject, isolation: str
) -> None:
    agent = python(isolation=isolation, reset_function="agent:reset")
    made = project(contract(FIRST, prompts=THREE, agent=agent), RESETTING)
    result = made.run()
    assert result.cell["outcome"] == "pass"
    assert sorted(made.lines("resets")) == sorted(made.lines("pids"))


def stateful() -> tuple[list[int], list[str]]:
    """A counter and a log for an HTTP agent."""
    return [0], []


def counting_server(state: list[int], log: list[str], *, status: int = 200) -> object:
    def answer(asked: Asked) -> Reply:
        log.append(asked.path)
        if asked.path != "/ask":
            state[0] = 0
            return status, "{}"
        state[0] += 1
        return says(f"call {state[0]}")

    return answer


# "`reset_endpoint` by POST, also relative"
@pytest.mark.parametrize("relative", [True, False])
def test_2_reset_endpoint_is_posted_before_every_trial(project: MakeProject, serve: Serve, relative: bool) -> None:
    state, log = stateful()
    server = serve(counting_server(state, log))  # type: ignore[arg-type]
    where = "/reset" if relative else f"{server.url}/reset"
    made = project(contract(FIRST, prompts=THREE, agent=server.section(reset_endpoint=where)))
    assert made.run().cell["outcome"] == "pass"
    assert log == ["/reset", "/ask"] * 4


# "Status >= 400, exception or 10 s -> the trial is an error."
def test_2_reset_status_400_is_a_trial_error(project: MakeProject, serve: Serve) -> None:
    server = serve(counting_server(*stateful(), status=400))  # type: ignore[arg-type]
    spec = contract(FIRST, agent=server.section(reset_endpoint="/reset"), advanced={"retries": 0})
    result = project(spec).run("--no-preflight")
    assert result.cell["outcome"] == "error"
    assert "400" in result.cell["reason"]
    assert result.code == 3
    assert server.asked() == []


# "outside measured time"
def test_2_reset_is_outside_measured_time_and_outside_the_timeout(project: MakeProject) -> None:
    agent = COUNTING + "\nimport time\ndef reset():\n    time.sleep(1.3)\n"
    section = python(reset_function="agent:reset", timeout=1000)
    rules = [rule("quick", "latency", max_ms=700), rule("answers", "completes")]
    result = project(contract(rules, agent=section, isolation="scenario"), agent).run("--no-preflight")
    assert set(result.outcomes.values()) == {"pass"}
    assert result.cells["quick", "calm"]["trials"][0]["latency_ms"] < 700


# "Trials on one shared agent with a reset do not overlap."
def test_2_trials_on_one_shared_agent_with_a_reset_do_not_overlap(project: MakeProject, serve: Serve) -> None:
    busy, most, lock = [0], [0], threading.Lock()

    def answer(asked: Asked) -> Reply:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.02)
        with lock:
            busy[0] -= 1
        return says("call 1")

    server = serve(answer)
    prompts = tuple(f"p{i}" for i in range(6))
    with_reset = contract(FIRST, prompts=prompts, agent=server.section(reset_endpoint="/reset"))
    assert project(with_reset).run("--concurrency", "6").code == 0
    assert most == [1]
    without = contract(FIRST, prompts=prompts, agent=server.section())
    assert project(without, name="without").run("--concurrency", "6").code == 0
    assert most[0] > 1, "without a reset they may overlap, or this test could not fail"


# "Python functions ... cwd is the spec's folder"
def test_2_the_agents_folder_is_the_specs(project: MakeProject, tmp_path: Path) -> None:
    made = project(contract(FIRST), COUNTING)
    elsewhere = project("unused: true\n", name="elsewhere")
    result = elsewhere.run("-c", str(made.folder / "holdfast.yaml"))
    assert result.cell["outcome"] == "pass"
    assert made.lines("pids")
