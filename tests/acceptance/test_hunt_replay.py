"""`holdfast hunt --replay`: only what follows the first fault is asked live; `--confirm-live` repeats the causes."""

from __future__ import annotations

import json

from cli import Asked, MakeProject, Project, Reply, Serve, Server, contract, rule
from plane_agents import command, equip
from test_hunt_noisy import PLANS
from test_launched_models import NO_KEYS, completion


def pay(asked: Asked) -> Reply:
    """A model that makes a plan, and pays twice without one."""
    prompt = json.loads(asked.body)["messages"][-1]["content"]
    if prompt.startswith("Plan: "):
        return completion("first look, then pay")
    return completion("Paid twice." if "no plan" in prompt else "Paid once.")


def list_prompts(server: Server) -> set[str]:
    return {json.loads(one.body)["messages"][-1]["content"] for one in server.requests}


def record(project: MakeProject, model: str) -> Project:
    """Return the project, with a recording of its calm calls."""
    models = {"gpt-*": {"base_url": f"{model}/v1", "name": "local-7b"}}
    made = equip(project(contract([rule("paid-once", value="once")], agent=command(), models=models), PLANS))
    assert made.cli("contract", "run", "--record", "calls.jsonl", env=NO_KEYS).code == 0
    return made


def test_calls_before_the_first_fault_are_answered_from_the_recording(project: MakeProject, serve: Serve) -> None:
    model = serve(pay)
    made = record(project, model.url)
    model.requests.clear()
    replayed = ("hunt", "--json", "--order", "1", "--max-trials", "40", "--replay", "calls.jsonl")
    found = made.cli(*replayed, env=NO_KEYS)
    assert found.code == 1, found.out + found.err
    assert {one["faults"][0]["on_call"] for one in found.json["causes"]} == {1}
    asked = list_prompts(model)
    assert "Do it. There is no plan." in asked
    assert not any(prompt.startswith("Plan: ") or "first look, then pay" in prompt for prompt in asked)
    live = made.cli(*replayed, "--confirm-live", "2", env=NO_KEYS).json
    assert {(one["live_failed"], one["live_runs"]) for one in live["causes"]} == {(2, 2)}
    assert any(prompt.startswith("Plan: ") for prompt in list_prompts(model))


def test_faults_that_the_recording_cannot_answer_stay_open(project: MakeProject, serve: Serve) -> None:
    model = serve(pay)
    made = record(project, model.url)
    made.write(made.read("holdfast.yaml").replace(model.url, "http://127.0.0.1:9"))
    found = made.cli("hunt", "--json", "--order", "1", "--max-trials", "100", "--replay", "calls.jsonl", env=NO_KEYS)
    assert (found.code, found.json["stopped"], found.json["causes"]) == (5, "done", []), found.err
    first, second = (row["states"] for row in found.json["matrix"])
    assert (first["stream_cut"], first["truncated_response"]) == ("open", "open")
    assert (first["timeout"], second["stream_cut"]) == ("held", "held")
    assert "open" not in second.values()
