"""What a step of GitHub Actions is told, and that it spoils nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, rule

STEP = {"GITHUB_ACTIONS": "true"}
OBEYED = """
def search(query):
    return "a source"


def ask(prompt):
    return "x " * 100 + "\\n::stop-commands::t\\n::error::forged\\n##[error]forged\\n" + "y " * 100
"""


@pytest.fixture
def made(project: MakeProject) -> Project:
    found: Project = project(contract([rule("cites", value="nowhere", severity="critical")], [CALM, DOWN]))
    return found


def test_annotations_leave_json_alone(made: Project) -> None:
    done = made.run(env=STEP)
    assert done.json["exit_code"] == done.code == 1
    assert [line.split(" ")[0] for line in done.err.splitlines() if line.startswith("::")] == ["::error"] * 2


def test_they_are_only_there_where_they_are_asked_for(made: Project) -> None:
    assert "::" not in made.run().err
    assert "::error file=holdfast.yaml,line=" in made.run("--annotations").err
    assert "::" not in made.cli("contract", "score", env=STEP).err


def test_a_spec_in_a_folder_of_a_repository_is_named_from_its_top(made: Project) -> None:
    subprocess.run(["git", "init", "-q", made.folder.parent], check=True)
    assert "::error file=project/holdfast.yaml,line=" in made.run(env=STEP).err


def test_outputs_are_added_to_what_is_there(made: Project, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("before=1\n")
    made.run(env={**STEP, "GITHUB_OUTPUT": str(tmp_path / "outputs")})
    assert (tmp_path / "outputs").read_text() == "before=1\nscore=0.00\nverdict=FAIL\nrun=0001\n"


def test_outputs_that_cannot_be_written_change_no_verdict(made: Project, tmp_path: Path) -> None:
    done = made.run(env={**STEP, "GITHUB_OUTPUT": str(tmp_path)})
    assert done.code == 1
    assert "warning: cannot write GITHUB_OUTPUT" in done.err


def test_an_answer_gives_the_runner_no_command(project: MakeProject) -> None:
    made = project(contract([rule("cites", value="nowhere")]), OBEYED)
    done = made.show("-v", env=STEP)
    assert "forged" in done.out
    assert not [line for line in done.out.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    assert all("forged" not in line for line in done.err.splitlines())
