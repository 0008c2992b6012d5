"""Files that a spec names and that are none: nobody waits for them when a spec of a stranger's is checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.spec import Checked, check

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


def checked(folder: Path, text: str) -> Checked:
    path = folder / "spec.yaml"
    path.write_text(text)
    return check(path, environ={})


@pytest.fixture
def odd(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "odd.py")  # an open of it waits until somebody writes
    return "odd.py"


def test_a_fixture_that_is_no_regular_file_is_not_opened(tmp_path: Path, odd: str) -> None:
    found = checked(tmp_path, f"{SCENARIO}fixtures: [{{type: sql, service: db, file: {odd}}}]\n")
    assert [one.message for one in found.problems] == ["'odd.py' is not a regular file"]


def test_a_script_that_is_no_regular_file_is_an_error(tmp_path: Path, odd: str) -> None:
    found = checked(tmp_path, f"{SCENARIO}models: {{m: {{script: {odd}}}}}\n")
    assert "'odd.py' is not a regular file" in [one.message for one in found.problems]


def test_an_mcp_config_that_is_no_regular_file_is_an_error(tmp_path: Path, odd: str) -> None:
    found = checked(tmp_path, CONTRACT % odd)
    assert "'odd.py' is not a regular file" in [one.message for one in found.problems]


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("fixtures: [{type: files, files: [{path: a, source: odd.py}]}]", "fixtures[0].files[0].source"),
        ("setup: {files: [{path: a, source: odd.py}]}", "setup.files[0].source"),
        ("replays: {sessions: [{file: odd.py}]}", "replays.sessions[0].file"),
    ],
)
def test_data_that_is_no_regular_file_is_an_error(tmp_path: Path, odd: str, section: str, path: str) -> None:
    found = checked(tmp_path, f"{SCENARIO}{section}\n")
    assert (path, "'odd.py' is not a regular file") in [(one.path, one.message) for one in found.problems]


def test_a_script_of_a_rule_that_is_no_regular_file_is_an_error(tmp_path: Path, odd: str) -> None:
    found = checked(tmp_path, SCENARIO.replace("{type: completes}", f"{{type: custom, script: {odd}}}"))
    assert "'odd.py' is not a regular file" in [one.message for one in found.problems]


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
