"""`holdfast shrink`: a failed trial of any run is reduced to its cause; and hunts on several sets of params."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from cli import MakeProject, Project, contract, python, rundir
from test_hunt import ONCE, shop

from golden_words import Golden

PATIENT = """
def find(name):
    return "G-2207"


def charge(guest):
    return "R-99310"


def ask(prompt):
    if "pay" not in prompt.lower():
        return "Hello."
    for attempt in range(3):
        try:
            guest = find(prompt)
            break
        except Exception:
            pass
    else:
        return "no guest"
    for attempt in range(1 if CAREFUL in prompt else 4):
        try:
            return charge(guest)
        except Exception:
            pass
    return "nothing was paid"
"""
"""Looks a guest up at most three times, and charges again after a lost reply unless the prompt says CAREFUL."""
FINDS = {"id": "finds", "type": "contains", "value": "no guest", "negate": True}


def test_shrink_reduces_a_failed_trial_of_any_run(project: MakeProject) -> None:
    storm = [
        {"tool": "find_order", "mode": "slow", "delay_ms": 1},
        {"tool": "charge", "mode": "lost_reply", "times": 1},
        {"tool": "charge", "mode": "slow", "delay_ms": 1},
    ]
    made = shop(project, rules=[ONCE])
    spec = yaml.safe_load(made.read("holdfast.yaml"))
    spec["contract"]["chaos_matrix"].append({"name": "storm", "tool_faults": storm})
    made.write(spec)
    trial = made.run("--scenario", "storm").trial["id"]
    found = made.cli("shrink", trial, "--json")
    assert found.code == 1, found.out + found.err
    (cause,) = found.json["causes"]
    assert [(one["mode"], one["target"]) for one in cause["faults"]] == [("lost_reply", "charge")]
    calm = next(one["id"] for one in made.stored("trials.jsonl", found.json["run"]))
    assert made.cli("shrink", calm, "--json").json["errors"][0]["code"] == "nothing-to-shrink"
    assert made.cli("shrink", "123456789abc", "--json").json["errors"][0]["code"] == "trial-unknown"


def lost(target: str, **schedule: Any) -> dict[str, Any]:
    return {"name": "storm", "tool_faults": [{"tool": target, "mode": "lost_reply", **schedule}]}


def down(target: str, **schedule: Any) -> dict[str, Any]:
    return {"name": "storm", "tool_faults": [{"tool": target, "mode": "error", **schedule}]}


def patient(
    project: MakeProject,
    storm: dict[str, Any],
    prompts: tuple[Any, ...] = ("Pay for room 118",),
    careful: str = "carefully",
    **more: Any,
) -> Project:
    agent = python(tools=["agent:find", "agent:charge"], isolation="inline")
    spec = contract([ONCE, FINDS], [{"name": "calm"}, storm], agent=agent, prompts=prompts, **more)
    return project(spec, PATIENT.replace("CAREFUL", repr(careful)))


def find_failed(made: Project, *words: str) -> str:
    """Run the scenario and return the id of a trial that failed."""
    made.cli("contract", "run", *words)
    return next(one["trial"] for one in made.stored("verdicts-1.jsonl") if one["outcome"] == "fail")


def shrink(made: Project, trial: str) -> dict[str, Any]:
    found = made.cli("shrink", trial, "--json")
    assert found.code == 1, found.out + found.err
    (cause,) = found.json["causes"]
    return cause


@pytest.mark.parametrize(
    ("storm", "fault"),
    [
        (down("find"), {"tool": "find", "mode": "error", "after_calls": 0, "times": 3}),
        (down("f*", times=10), {"tool": "find", "mode": "error", "after_calls": 0, "times": 3}),
        (lost("c*", times=3), {"tool": "charge", "mode": "lost_reply", "on_call": 1}),
    ],
    ids=["always", "ten times", "pattern"],
)
def test_a_fault_strikes_no_more_calls_than_the_failure_needs(
    project: MakeProject, storm: dict[str, Any], fault: dict[str, Any]
) -> None:
    made = patient(project, storm)
    cause = shrink(made, find_failed(made))
    assert cause["scenario"]["tool_faults"] == [fault]


THREE = """
def charge(guest):
    return "R-99310"


def ask(prompt):
    for guest in ("A", "B", "C"):
        for attempt in range(2):
            try:
                charge(guest)
                break
            except Exception:
                pass
    return "done"
"""


def test_a_fault_at_a_later_call_is_moved_to_an_earlier_one(project: MakeProject) -> None:
    agent = python(tools=["agent:charge"], isolation="inline")
    made = project(contract([ONCE], [{"name": "calm"}, lost("charge", on_call=3)], agent=agent), THREE)
    cause = shrink(made, find_failed(made))
    assert cause["scenario"]["tool_faults"] == [{"tool": "charge", "mode": "lost_reply", "on_call": 1}]


def test_a_fault_with_a_probability_is_placed_at_the_calls_that_it_struck(project: MakeProject) -> None:
    made = patient(project, down("*", probability=0.7))
    cause = shrink(made, find_failed(made, "--replicas", "6"))
    assert [(one["tool"], one["on_call"]) for one in cause["scenario"]["tool_faults"]] == [
        ("find", call) for call in (1, 2, 3)
    ]


def test_turns_that_the_failure_does_not_need_are_dropped(project: MakeProject) -> None:
    made = patient(project, lost("charge"), ({"turns": ["Hello", "Pay for room 118", "Bye"]},))
    trial = find_failed(made)
    cause = shrink(made, trial)
    assert (cause["prompt"], cause["shrunk_trial"]) == ("Pay for room 118", trial)
    # No other hunt asks that, so it is not among the known causes, and the command shrinks the trial again.
    assert not list((made.folder / ".holdfast").rglob("hunts/**/*.json"))
    shown = made.cli("shrink", trial)
    assert f"holdfast shrink {trial}" in shown.out


@pytest.mark.parametrize(("careful", "prompt"), [("never", "Pay for room 118"), ("Pay for room", "")])
def test_a_mutation_is_dropped_unless_only_it_fails(project: MakeProject, careful: str, prompt: str) -> None:
    made = patient(project, lost("charge"), careful=careful)
    spec = yaml.safe_load(made.read("holdfast.yaml"))
    rules = spec.pop("contract")["invariants"]
    faults = lost("charge")["tool_faults"]
    made.write(
        {**spec, "invariants": rules, "mutations": {"types": ["noise"], "count": 2}, "chaos": {"tool_faults": faults}}
    )
    assert made.cli("run", "--chaos").code == 1
    trial = next(one["trial"] for one in made.stored("verdicts-1.jsonl") if one["outcome"] == "fail")
    cause = shrink(made, trial)
    if prompt:
        assert (cause["prompt"], cause["shrunk_trial"]) == (prompt, "")
    else:
        assert (cause["prompt"] != "Pay for room 118", cause["shrunk_trial"]) == (True, trial)


def test_params_are_those_of_the_trial_if_only_they_fail(project: MakeProject) -> None:
    made = patient(
        project,
        lost("charge"),
        ("Pay {{ params.how }} for room 118",),
        parallelism={"matrix": {"how": ["carefully", "now"]}},
    )
    cause = shrink(made, find_failed(made))
    assert (cause["params"], cause["scenario"]["tool_faults"][0]["mode"]) == ({"how": "now"}, "lost_reply")
    # A hunt asks with all params, tells them apart, and knows the cause.
    found = made.cli("hunt", "--json", "--sweep", "lost_reply")
    assert [one["params"] for one in found.json["causes"]] == [{"how": "now"}]
    assert found.json["causes"][0]["known"]
    assert made.cli("show").code == 0
    again = made.cli("hunt", "--json", "--cause", cause["id"]).json
    assert [one["params"] for one in again["causes"]] == [{"how": "now"}]
    assert rundir(made).joinpath("report.html").is_file()


def test_what_does_not_fail_again_is_said(project: MakeProject, golden: Golden) -> None:
    made = patient(project, lost("charge"))
    trial = find_failed(made)
    (made.folder / "agent.py").write_text(PATIENT.replace("CAREFUL", "'Pay'"))
    gone = made.cli("shrink", trial, "--json")
    assert (gone.code, gone.json["causes"]) == (5, [])
    golden(gone.json["notes"])
