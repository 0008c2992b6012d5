"""`holdfast init`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


def holdfast(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOLDFAST, *arguments], cwd=here, capture_output=True, text=True, timeout=60)


def test_init_writes_a_spec_and_an_agent_and_says_what_is_next(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init")
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"holdfast.yaml", "agent.py", ".holdfast"}
    assert done.stdout.splitlines()[:2] == ["wrote holdfast.yaml", "wrote agent.py"]
    assert "  holdfast contract run\n" in done.stdout


def test_the_spec_points_editors_to_a_schema_that_is_there_and_takes_it(tmp_path: Path) -> None:
    holdfast(tmp_path, "init")
    spec = (tmp_path / "holdfast.yaml").read_text()
    schema = tmp_path / spec.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert jsonschema_rs.validator_for(json.loads(schema.read_text())).is_valid(yaml.safe_load(spec))
    assert schema.with_name(".gitignore").read_text() == "*\n"
    assert schema.read_text() == holdfast(tmp_path, "schema").stdout
    refused = holdfast(tmp_path, "schema", "-o", "deep/er.json")
    assert (refused.returncode, "mkdir -p deep" in refused.stderr) == (4, True)
    assert not (tmp_path / "deep").exists()
    assert holdfast(tmp_path, "schema", "-o", "other.json").stdout == "wrote other.json\n"
    assert (tmp_path / "other.json").read_text() == schema.read_text()
    (tmp_path / "clone").mkdir()
    assert holdfast(tmp_path, "schema", "-o", "agent.py/x.json").returncode == 4
    assert holdfast(tmp_path, "schema", "-o", "clone/.holdfast/schema.json").returncode == 0
    assert (tmp_path / "clone/.holdfast/.gitignore").read_text() == "*\n"


@pytest.mark.parametrize("options", [(), ("--http",), ("--command",)])
def test_the_starter_is_short_and_validates_without_a_warning(tmp_path: Path, options: tuple[str, ...]) -> None:
    holdfast(tmp_path, "init", *options)
    checked = json.loads(holdfast(tmp_path, "contract", "validate", "--json").stdout)
    assert (checked["valid"], checked["errors"], checked["warnings"]) == (True, [], [])
    for path in tmp_path.glob("[!.]*.*"):
        assert len(path.read_text().splitlines()) <= 60


@pytest.mark.parametrize("options", [(), ("--command",)])
def test_the_starter_runs_at_once_and_finds_the_guess(tmp_path: Path, options: tuple[str, ...]) -> None:
    holdfast(tmp_path, "init", *options)
    done = holdfast(tmp_path, "contract", "run")
    assert (done.returncode, done.stderr) == (1, "")
    assert "✘ never-guesses · stock-api-down" in done.stdout
    assert "FAIL  1 critical " in done.stdout


@pytest.mark.parametrize("options", [(), ("--command",)])
def test_the_starter_holds_once_it_is_fixed_as_it_says(tmp_path: Path, options: tuple[str, ...]) -> None:
    holdfast(tmp_path, "init", *options)
    agent = tmp_path / "agent.py"
    guess = next(line for line in agent.read_text().splitlines() if "Fix: " in line)
    fixed = guess[: len(guess) - len(guess.lstrip())] + guess.partition("Fix: ")[2]
    agent.write_text(agent.read_text().replace(guess, fixed))
    done = holdfast(tmp_path, "contract", "run")
    assert done.returncode == 0, done.stdout
    assert "resilience 100.00" in done.stdout


def test_init_never_overwrites_and_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("mine\n")
    done = holdfast(tmp_path, "init")
    assert done.returncode == 4
    assert "agent.py" in done.stderr
    assert "[file-exists]" in done.stderr
    assert "--force" in done.stderr
    assert not (tmp_path / "holdfast.yaml").exists()
    assert (tmp_path / "agent.py").read_text() == "mine\n"


def test_init_overwrites_with_force(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("mine\n")
    assert holdfast(tmp_path, "init", "--force").returncode == 0
    assert "def answer" in (tmp_path / "agent.py").read_text()


def test_init_makes_the_folder_and_says_how_to_get_there(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "my agents/first")
    assert (tmp_path / "my agents" / "first" / "agent.py").exists()
    assert "  cd 'my agents/first' && holdfast " in done.stdout


def test_init_http_writes_an_agent_that_answers_and_breaks_one_rule(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--http")
    assert {path.name for path in tmp_path.iterdir()} == {"holdfast.yaml", "agent.py", ".holdfast"}
    assert "holdfast verify" in done.stdout
    assert holdfast(tmp_path, "verify").returncode == 0
    failed = json.loads(holdfast(tmp_path, "contract", "run", "--json").stdout)["parts"]["contract"]["cells"]
    assert {cell["invariant"] for cell in failed if cell["outcome"] == "fail"} == {"obeys-nobody-else"}
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace('return f"{stock} (You wrote: {message})"', "return stock"))
    assert holdfast(tmp_path, "contract", "run").returncode == 0


def test_init_command_writes_a_program_with_its_scripted_model(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--command")
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"holdfast.yaml", "agent.py", "model.yaml", ".holdfast"}


def test_init_of_two_kinds_at_once_is_a_usage_error(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--command", "--http")
    assert done.returncode == 4
    assert list(tmp_path.iterdir()) == []


def test_init_in_a_place_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert holdfast(tmp_path, "init", "taken").returncode == 4
    assert holdfast(tmp_path, "init", "taken/below").returncode == 4
