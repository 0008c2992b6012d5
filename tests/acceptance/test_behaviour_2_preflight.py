"""behaviour.md 2: the first prompt is asked once, or twice, before anything else."""

from __future__ import annotations

import json
import socket
import threading
import time
from itertools import count

import pytest
from cli import CALM, DOWN, Asked, MakeProject, Reply, Serve, contract, python, rule, says, unseal

ANY = [rule("any", "regex", pattern=".")]
DOCUMENTED = (
    "Warning: No reset_endpoint configured. Contract matrix cells may share state. Results may be contaminated. "
    "Add reset_endpoint to your config for accurate isolation."
)
SAMPLES = "(an agent that samples also looks like this)"
REMEMBERING = """
calls = 0

def search(query):
    return query

def ask(prompt):
    global calls
    calls += 1
    return f"answer {calls}"
"""
ASKED = """
def search(query):
    return query

def ask(prompt):
    with open('asked', 'a') as file:
        file.write(prompt + '\\n')
    return prompt
"""


# "the first prompt is asked once without chaos (a stored control trial ...)"
def test_2_preflight_asks_the_first_prompt_once_and_stores_it_as_a_control(project: MakeProject) -> None:
    made = project(contract(ANY, [DOWN], prompts=("first", "second")), ASKED)
    made.run("--allow-vacuous")
    assert made.lines("asked").count("first") == 2
    assert made.lines("asked").count("second") == 1
    (control,) = [t for t in made.stored("trials.jsonl") if t["kind"] == "control"]
    assert control["task"]["turns"] == ["first"]
    assert made.stored("observations-0.jsonl")[0]["trial"] == control["id"]


# "reused by `baseline: auto`"
def test_2_preflight_is_reused_by_baseline_auto(project: MakeProject) -> None:
    rules = [rule("same", "behavior_unchanged", baseline="auto")]
    made = project(contract(rules, [CALM], prompts=("first", "second")), ASKED)
    assert made.run().code == 0
    assert sorted(made.lines("asked")) == ["first", "first", "second", "second"]


# "an agent that cannot be reached ... ends the run here with exit 3"
def test_2_preflight_unreachable_agent_is_exit_3(project: MakeProject) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/ask"
    made = project(contract(ANY, agent={"type": "http", "endpoint": url}, advanced={"retries": 0}))
    result = made.show()
    assert result.code == 3
    assert "connection refused" in result.err
    assert "start the agent" in result.err
    assert not (made.folder / ".holdfast" / "runs" / "0001").exists()


def test_2_preflight_unreachable_agent_with_json(project: MakeProject) -> None:
    result = project(contract(ANY, agent={"type": "http", "endpoint": "http://127.0.0.1:9/"})).run()
    assert (result.code, result.json["exit_code"]) == (3, 3)
    assert result.json["score"] is None
    assert result.json["passed"] is False


# "or a reply with nothing at `response_path` ... exit 4 and the body shown"
def test_2_preflight_nothing_at_response_path_is_exit_4_with_the_body_shown(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (200, json.dumps({"reply": {"words": "here I am"}})))
    made = project(contract(ANY, agent=server.section(response_path="$.answer.text")))
    result = made.show()
    assert result.code == 4
    assert "$.answer.text" in result.err
    assert "here I am" in result.err
    assert len(server.requests) == 1


# "Where state could leak and no reset is set (an HTTP agent already running, `worker`, `inline`) it is asked twice"
def test_2_preflight_asks_a_running_http_agent_twice(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: says("same"))
    made = project(contract(ANY, prompts=("a", "b"), agent=server.section()))
    result = made.run()
    assert [r.prompt for r in server.asked()][:2] == ["a", "a"]
    assert len(server.asked()) == 4
    assert result.json["warnings"] == []


def test_2_preflight_asks_once_where_a_reset_is_set(project: MakeProject, serve: Serve) -> None:
    answers = count(1)
    server = serve(lambda asked: says(f"answer {next(answers)}"))
    result = project(contract(ANY, agent=server.section(reset_endpoint="/reset"))).run()
    assert len(server.asked()) == 2
    assert result.json["warnings"] == []


# "if the answers differ, the documented warning, verbatim, once, on stderr and in the report"
@pytest.mark.parametrize("isolation", ["worker", "inline"])
def test_2_preflight_warns_verbatim_of_a_stateful_python_agent(project: MakeProject, isolation: str) -> None:
    made = project(contract(ANY, agent=python(isolation=isolation)), REMEMBERING)
    result = made.command("contract", "run", "--json")
    assert result.err.count(f"{DOCUMENTED} {SAMPLES}") == 1
    assert [one["code"] for one in result.json["warnings"]] == ["stateful"]
    assert result.code == 0


def stateful(serve: Serve) -> tuple[object, list[int]]:
    """An HTTP agent that remembers, and the most requests it had at once."""
    answers, busy, most, lock = count(1), [0], [0], threading.Lock()

    def answer(asked: Asked) -> Reply:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.02)
        with lock:
            busy[0] -= 1
            return says(f"answer {next(answers)}")

    return serve(answer), most


# "trials then run one at a time. The run is not failed."
def test_2_preflight_warning_makes_trials_run_one_at_a_time_and_fails_nothing(
    project: MakeProject, serve: Serve
) -> None:
    server, most = stateful(serve)
    spec = contract(ANY, prompts=tuple("abcdef"), agent=server.section())  # type: ignore[attr-defined]
    result = project(spec).show("--concurrency", "6")
    assert result.err.count(DOCUMENTED) == 1
    assert most == [1]
    assert result.code == 0
    assert "PASS" in result.out


def test_2_preflight_warning_is_in_every_report(project: MakeProject, serve: Serve) -> None:
    server, _ = stateful(serve)
    made = project(contract(ANY, agent=server.section()))  # type: ignore[attr-defined]
    made.show("-o", "r.html", "-o", "r.md", "-o", "r.json", "-o", "r.xml")
    for name in ("r.html", "r.md", "r.json", "r.xml"):
        assert DOCUMENTED.split(". ")[1] in made.read(name), name  # Markdown escapes the underscore before


def test_2_preflight_warning_and_one_at_a_time_hold_for_the_resumed_run_too(project: MakeProject, serve: Serve) -> None:
    server, most = stateful(serve)
    spec = contract(ANY, prompts=tuple("abcdef"), agent=server.section())  # type: ignore[attr-defined]
    made = project(spec)
    made.run("--concurrency", "6")
    path = made.folder / ".holdfast/runs/0001/observations-0.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    unseal(made)
    result = made.run("--resume", "1", "--concurrency", "6")
    assert len(result.trials) == 6
    assert most == [1]
    assert "stateful" in [one["code"] for one in result.json["warnings"]]


# "`--no-preflight`"
def test_2_no_preflight_asks_nothing_first(project: MakeProject, serve: Serve) -> None:
    answers = count(1)
    server = serve(lambda asked: says(f"answer {next(answers)}"))
    result = project(contract(ANY, agent=server.section())).run("--no-preflight")
    assert len(server.asked()) == 1
    assert result.json["warnings"] == []


def test_2_no_preflight_still_asks_the_controls_a_rule_compares_with(project: MakeProject) -> None:
    rules = [rule("same", "behavior_unchanged", baseline="auto")]
    made = project(contract(rules, [CALM], prompts=("first", "second")), ASKED)
    assert made.run("--no-preflight").code == 0
    assert sorted(made.lines("asked")) == ["first", "first", "second", "second"]
