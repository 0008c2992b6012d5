"""Files that a spec names and that are none: nobody waits for them when a spec of a stranger's is checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.spec import CheckResult, check

SCENARIO = """
version: 1
id: t
agent: {type: command, command: a}
task: {prompt: p}
services: [{name: db, image: "mysql:8"}]
invariants: {r: {description: d, check: {type: completes}}}
"""
CONTRACT = """
agent: {type: command, command: "my-agent {mcp_config}", mcp_config: %s}
golden_prompts: [one]
contract:
  name: c
  invariants: [{id: answers, type: completes, description: d}]
  chaos_matrix: [{name: calm}]
"""


def checked(folder: Path, text: str) -> CheckResult:
    path = folder / "spec.yaml"
    path.write_text(text)
    return check(path, environ={})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (SCENARIO + "fixtures: [{type: sql, service: db, file: odd.py}]\n", "fixtures[0].file"),
        (SCENARIO + "fixtures: [{type: files, files: [{path: a, source: odd.py}]}]\n", "fixtures[0].files[0].source"),
        (SCENARIO + "setup: {files: [{path: a, source: odd.py}]}\n", "setup.files[0].source"),
        (SCENARIO + "replays: {sessions: [{file: odd.py}]}\n", "replays.sessions[0].file"),
        (SCENARIO + "models: {m: {script: odd.py}}\n", "models.m.script"),
        (CONTRACT % "odd.py", "agent.mcp_config"),
        (SCENARIO.replace("{type: completes}", "{type: custom, script: odd.py}"), "invariants.r.check.script"),
    ],
)
def test_a_pipe_is_an_error_and_nobody_waits_for_it(tmp_path: Path, text: str, path: str) -> None:
    os.mkfifo(tmp_path / "odd.py")  # an open of it waits until somebody writes
    found = checked(tmp_path, text)
    assert (path, "unreadable-file") in [(one.path, one.code) for one in found.problems]


def test_folders_are_still_folders(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    found = checked(tmp_path, f"{SCENARIO}fixtures: [{{type: directory, source: repo}}]\n")
    assert found.spec is not None, found.problems


def test_an_mcp_config_without_end_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with (tmp_path / "long.json").open("wb") as file:
        file.truncate(20_000_000)
    for name in ("deep.json", "long.json"):
        (problem,) = checked(tmp_path, CONTRACT % name).problems
        assert problem.code == "bad-mcp-config"
        assert f"{name} cannot be read" in problem.message


@pytest.mark.parametrize("agent", ["binary: %s", "binary: ./%s", "command: a, mcp_config: %s", "command: a, dir: %s"])
def test_a_name_that_is_too_long_is_an_error(tmp_path: Path, agent: str) -> None:
    text = SCENARIO.replace("command: a", agent % ("x" * 5000)).replace("services:", "#")
    assert "'" + "x" * 40 in "".join(one.message for one in checked(tmp_path, text).problems).replace("./", "")


def test_the_spec_itself_may_come_by_a_pipe() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, SCENARIO.encode())
    os.close(theirs)
    try:
        assert check(Path(f"/dev/fd/{ours}"), environ={}).spec is not None
    finally:
        os.close(ours)
