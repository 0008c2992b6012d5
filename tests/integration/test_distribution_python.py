"""Holdfast in an environment of the distribution's own Python: it names folders that are not there; worlds run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from distribution_kit import USERS, install, run

SPEC = """
version: 1
id: notes
task: {prompt: "Write the note."}
agent: AGENT
invariants:
  written:
    {description: "The note is there", gate: true, check: {type: file_content, path: note.txt, contains: "msgspec"}}
services: [{name: mail, type: http_mock, routes: [{method: GET, path: /, status: 200, response: "{}"}]}]
"""
DEED = """
import pathlib, sys
import holdfast, msgspec


def answer(prompt):
    assert sys.prefix != sys.base_prefix == "/usr"
    pathlib.Path("note.txt").write_text(msgspec.__name__)
    return "done"


if __name__ == "__main__":
    print(answer(""))
"""
AGENTS = {
    "command": '{type: command, command: "python bot.py"}',
    "python": '{type: python, endpoint: "bot:answer", sandbox: true}',
}


@pytest.fixture(scope="module")
def command() -> Iterator[Path]:
    """Holdfast as an ordinary user can start it; pytest's own folders are for root alone."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield install(Path(folder) / "env")


@pytest.fixture
def work() -> Iterator[Path]:
    with TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o777)
        (Path(folder) / "bot.py").write_text(DEED)
        yield Path(folder)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("user", USERS)
def test_a_world_runs_green(command: Path, work: Path, user: str, agent: str) -> None:
    (work / "holdfast.yaml").write_text(SPEC.replace("AGENT", AGENTS[agent]))
    done = run(user, work, command, "run", "--json")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    (case,) = json.loads(done.stdout)["parts"]["scenario"]["cases"]
    assert case["status"] == "pass"


@pytest.mark.parametrize("user", USERS)
def test_the_doctor_has_opened_a_sandbox(command: Path, work: Path, user: str) -> None:
    done = run(user, work, command, "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = [one for one in json.loads(done.stdout)["machine"] if one["route"] == "sandbox"]
    assert (found["ok"], found["needed"]) == (True, True), found
