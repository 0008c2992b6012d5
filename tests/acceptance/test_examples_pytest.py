"""The example with pytest: twenty tests of an agent on two workers, green and red as its page says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/pytest"


@pytest.mark.processes
@pytest.mark.long
def test_the_example_is_as_green_and_as_red_as_it_says(tmp_path: Path) -> None:
    project = tmp_path / "desk"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    command = [sys.executable, "-m", "pytest", "-p", "no:langsmith_plugin", "-n", "2", "--junitxml=junit.xml"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=400)
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, "4 failed, 16 passed" in last) == (1, True), done.stdout
    suite = ElementTree.parse(project / "junit.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["20", "4", "0", "0"]
    failed = [(case.get("name"), case.find("failure")) for case in suite.iter("testcase")]
    said = {name: str(found.get("message")) for name, found in failed if found is not None}
    assert set(said) == {
        "never-guesses[stock-down]",
        "test_hasty_guesses",
        "test_hasty_pays_twice",
        "test_a_fault_that_was_never_met_proves_nothing",
    }
    assert "fail: 'cannot see " in said["never-guesses[stock-down]"]
    assert "contains unproven" in said["test_a_fault_that_was_never_met_proves_nothing"]
    page = (EXAMPLE / "README.md").read_text()
    assert "4 failed, 16 passed" in page
    assert [name for name in said if str(name) not in page] == []
