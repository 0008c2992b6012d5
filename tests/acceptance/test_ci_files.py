"""The GitHub Action and the GitLab template: their own shell, run on a project as the runners would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import CALM, DOWN, HOLDFAST, MakeProject, Project, contract, rule

REPO = Path(__file__).parents[2]
ACTION = yaml.safe_load((REPO / "action.yml").read_text())
JOB = yaml.safe_load((REPO / "ci" / "gitlab.yml").read_text())[".holdfast"]
BARE = {
    "PATH": f"{Path(HOLDFAST).parent}:{os.environ['PATH']}",
    "HOME": os.environ.get("HOME", "/"),
    "LANG": "C.UTF-8",
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_COMPILE": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the wrong way round
}


class Step:
    """What a step of the action came to."""

    def __init__(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        lines = (folder / "output").read_text().splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        self.summary = (folder / "summary").read_text()


def filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)


def step(made: Project, id: str, **given: str) -> Step:
    """Runs a step as the runner does: its script in a file, by `bash -eo pipefail`, with files for what it tells."""
    inputs = {name: str(one["default"]) for name, one in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    (found,) = [one for one in ACTION["runs"]["steps"] if one.get("id") == id or one.get("name") == id]
    folder = made.folder.parent / "runner"
    folder.mkdir(exist_ok=True)
    for name in ("output", "summary"):
        (folder / name).write_text("")
    script = folder / "step.sh"
    script.write_text(found["run"])
    env = {name: filled(value, inputs) for name, value in found.get("env", {}).items()}
    env |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(REPO),
        "GITHUB_WORKSPACE": str(made.folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "PIP_TARGET": str(folder / "installed"),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    done = subprocess.run(command, cwd=made.folder, env={**BARE, **env}, capture_output=True, text=True, timeout=120)
    return Step(done, folder)


@pytest.fixture
def made(project: MakeProject) -> Project:
    rules = [rule("cites", value="source", severity="critical"), rule("polite", value="please")]
    found: Project = project(contract(rules, [CALM, DOWN]))
    return found


def test_the_action_has_the_inputs_and_outputs_that_it_uses() -> None:
    text = (REPO / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert set(ACTION["outputs"]) == {"score", "verdict", "run"}
    assert ACTION["runs"]["using"] == "composite"
    assert all("shell" in one for one in ACTION["runs"]["steps"] if "run" in one)
    assert all("${{" not in one.get("run", "") for one in ACTION["runs"]["steps"]), "an input is data, not script"


def test_the_action_fails_where_the_contract_does_and_says_where(made: Project) -> None:
    done = step(made, "holdfast", command="contract run")
    assert done.code == 1
    assert done.outputs == {"score": "75.00", "verdict": "FAIL", "run": "0001"}
    assert done.summary.startswith("## ✘ FAIL: The contract")
    marked = [line for line in done.err.splitlines() if line.startswith("::")]
    lines = (made.folder / "holdfast.yaml").read_text().splitlines()
    at = next(n for n, line in enumerate(lines, 1) if "polite" in line)
    assert [line.split(",title")[0] for line in marked] == [f"::warning file=holdfast.yaml,line={at}"] * 2


def test_the_action_passes_its_inputs_on_as_words(made: Project) -> None:
    (made.folder / "a b.yaml").write_text(made.read("holdfast.yaml"))
    words = "--scenario 'calm' -o 'out put/report.sarif' -q"
    done = step(made, "holdfast", command="contract run", spec="a b.yaml", min_score="50", args=words)
    assert done.code == 0, done.err
    assert done.outputs["verdict"] == "PASS"
    assert (made.folder / "out put" / "report.sarif").is_file()


@pytest.mark.parametrize("hostile", ["$(touch pwned)", "; touch pwned", "`touch pwned`", "'; touch pwned; '"])
def test_an_input_is_never_run(made: Project, hostile: str) -> None:
    done = step(made, "holdfast", command="contract run", spec=hostile, min_score="", args="")
    assert done.code == 4
    assert done.outputs == {"verdict": "ERROR"}
    done = step(made, "holdfast", command="contract run", args=hostile)
    assert done.code == 4
    assert not (made.folder / "pwned").exists()


def test_the_action_installs_the_holdfast_that_it_comes_with(made: Project) -> None:
    done = step(made, "Install Holdfast")
    assert done.code == 0, done.err
    installed = made.folder.parent / "runner" / "installed"
    env = {**BARE, "PYTHONPATH": str(installed)}
    where = [sys.executable, "-c", "import holdfast; print(holdfast.__file__)"]
    told = subprocess.run(where, env=env, cwd=installed, capture_output=True, text=True, check=True)
    assert told.stdout.startswith(str(installed))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holdfast as pip installs it, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder), str(REPO)]
    subprocess.run(command, env=BARE, check=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return found


def gitlab(made: Project, wheel: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the job's scripts one after the other in one shell, as GitLab's runner does."""
    lines = [line for part in ("before_script", "script") for line in JOB[part]]
    env = {**BARE, **{name: str(value) for name, value in JOB["variables"].items()}, **variables}
    env |= {"CI": "true", "HOLDFAST_SOURCE": str(wheel), "PIP_TARGET": str(made.folder.parent / "installed")}
    shell: list[str] = [shutil.which("dash") or "sh", "-e", "-c", "\n".join(lines)]
    return subprocess.run(shell, cwd=made.folder, env=env, capture_output=True, text=True, timeout=120)


def test_the_gitlab_job_fails_where_the_contract_does_and_leaves_its_reports(made: Project, wheel: Path) -> None:
    done = gitlab(
        made, wheel, HOLDFAST_COMMAND="contract run", HOLDFAST_ARGS="-o holdfast-report/junit.xml -k cites or polite"
    )
    assert done.returncode == 4, "words are separated by blanks"
    done = gitlab(made, wheel, HOLDFAST_COMMAND="contract run", HOLDFAST_ARGS="-o holdfast-report/junit.xml")
    assert done.returncode == 1, done.stderr
    assert "FAIL" in done.stdout
    artifacts: Any = JOB["artifacts"]
    assert [path.name for path in made.folder.glob(artifacts["reports"]["junit"])] == ["junit.xml"]
    assert all((made.folder / path).exists() for path in artifacts["paths"])


@pytest.mark.long
def test_the_gitlab_job_takes_a_spec_and_a_minimum(made: Project, wheel: Path) -> None:
    (made.folder / "a b.yaml").write_text(made.read("holdfast.yaml"))
    variables = {"HOLDFAST_COMMAND": "contract run", "HOLDFAST_SPEC": "a b.yaml", "HOLDFAST_MIN_SCORE": "60"}
    done = gitlab(made, wheel, **variables, HOLDFAST_ARGS="-q")
    assert done.returncode == 0, done.stderr
    assert "PASS" in done.stdout
