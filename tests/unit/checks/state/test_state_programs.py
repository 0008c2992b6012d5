"""Which programs a command runs, and which of them a shell did not find."""

from __future__ import annotations

import pytest

from holdfast.checks.state.programs import named_in, of_workspace, programs_in


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("pytest -q", ("pytest",)),
        ("cd app && CI=1 exec npm test | tee log", ("cd", "npm", "tee")),
        ("! diff a b; [ -s log ]", ("diff",)),
        ("env -u X FOO=1 uvx ruff", ("uvx",)),
        ("$PY -m x; `which y`", ()),
        ("echo 'unclosed", ()),
    ],
)
def test_the_programs_of_a_command(command: str, programs: tuple[str, ...]) -> None:
    assert programs_in(command) == programs


@pytest.mark.parametrize(
    ("stderr", "names"),
    [
        ("sh: 1: pytest: not found\n", ("pytest",)),
        ("tests/run.sh: line 3: uvx: command not found\n", ("uvx",)),
        ("env: \u2018uvx\u2019: No such file or directory\n", ("uvx",)),
        ("3 failed, 2 passed\n", ()),
    ],
)
def test_the_programs_that_a_shell_did_not_find(stderr: str, names: tuple[str, ...]) -> None:
    assert named_in(stderr) == names


def test_what_the_agent_was_to_make_is_a_path_in_the_workspace() -> None:
    made = ["./app", "bin/app", "/workspace/app"]
    assert [of_workspace(one, "/workspace") for one in (*made, "pytest", "/usr/bin/pytest")] == [True] * 3 + [False] * 2
