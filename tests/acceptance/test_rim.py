"""The rim: pipes that close, disks that are full, numbers that are none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
SPEC = """
agent: {type: python, endpoint: "agent:ask"}
golden_prompts: [hi]
contract: {name: x, invariants: [{id: r, type: contains, value: hi, description: d}]}
chaos_matrix: [{name: calm}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "holdfast.yaml").write_text(SPEC)
    (tmp_path / "agent.py").write_text("def ask(prompt):\n    return prompt\n")
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "H": HOLDFAST}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_a_reader_that_leaves_does_not_change_the_verdict(folder: Path) -> None:
    done = shell(folder, "$H contract run | true; echo ${PIPESTATUS[0]}")
    assert done.stdout.split() == ["0"]
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_do_not_change_the_verdict(folder: Path, closed: str) -> None:
    assert shell(folder, f"$H contract run {closed}").returncode == 0


def test_a_report_that_cannot_be_written_to_stdout_is_never_a_success(folder: Path) -> None:
    done = shell(folder, "$H contract run --json > /dev/full")
    assert done.returncode == 3
    assert done.stderr == "error: cannot write to stdout: No space left on device\n"


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    (folder / ".holdfast").write_text("a file")
    done = shell(folder, "$H contract run")
    assert done.returncode == 3
    assert ".holdfast" in done.stderr
    assert "bug" not in done.stderr


def test_a_minimum_that_is_no_number_is_refused(folder: Path) -> None:
    done = shell(folder, "$H contract run --min-score nan")
    assert (done.returncode, "not a number" in done.stderr) == (4, True)
