"""A rule whose program is missing: an error that the preflight and the doctor foretell, never the agent's failure."""

from __future__ import annotations

from cli import MakeProject, Project

SPEC = """
version: 1
id: programs
task: {prompt: "Do it"}
agent: {type: command, command: "echo done"}
network: {egress: {default: deny}}
invariants:
  tests_pass: {description: d, gate: true, check: {type: command_exit, command: "no-such-pytest -q"}}
  ends_well: {description: d, check: {type: completes}}
"""


def desk(project: MakeProject) -> Project:
    return project(SPEC)


def test_it_is_an_error_and_the_preflight_warns(project: MakeProject) -> None:
    result = desk(project).cli("run", "--json", "--no-report")
    assert result.code == 3
    assert [case["status"] for case in result.json["parts"]["scenario"]["cases"]] == ["error"]
    assert any("no-such-pytest" in warning["text"] for warning in result.json["warnings"])


def test_the_doctor_tries_it_in_the_world(project: MakeProject) -> None:
    result = desk(project).cli("doctor", "--json")
    (found,) = [one for one in result.json["agent"]["findings"] if "no-such-pytest" in one["route"]]
    assert found["outcome"] == "unproven"
