"""`holdfast demo`, as a person runs it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.demo.demo import CONVICTED, FILES, VERSIONS, surprise
from holdfast.model.score import Cell

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    here = tmp_path_factory.mktemp("demo")
    return here, _run([HOLDFAST, "demo"], here)


def _run(command: list[str], here: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60)


def test_demo_holds_the_good_agent_and_convicts_the_careless_one(shown) -> None:
    _, done = shown
    assert (done.returncode, done.stderr) == (0, "")
    good, careless = done.stdout.split("2. The careless agent")
    assert "Resilience 100.00" in good
    assert re.search(r"^PASS ", good, re.MULTILINE)
    assert "✘" not in good
    assert "Resilience 60.00" in careless
    assert re.search(r"^FAIL   2 critical cells failed", careless, re.MULTILINE)
    assert set(re.findall(r"^✘ (\S+) in (\S+)", careless, re.MULTILINE)) == CONVICTED


def test_demo_says_what_was_seen_and_what_to_do_next(shown) -> None:
    last = [line for line in shown[1].stdout.splitlines() if not line.startswith("`holdfast` is")]
    seen, next_step = last[-2:]
    assert "held by a good agent and broken by a careless one" in seen
    assert "holdfast init" in next_step


def test_demo_writes_the_reports_it_names(shown) -> None:
    here, done = shown
    named = re.findall(r"·   (\S+report\.html)", done.stdout)
    assert named == [".holdfast/runs/0001/report.html", ".holdfast/runs/0002/report.html"]
    for path in named:
        assert (here / path).read_text().lstrip().lower().startswith("<!doctype html")


def test_every_reproduce_command_of_the_demo_works_when_pasted(shown) -> None:
    here, done = shown
    commands = [shlex.split(line) for line in re.findall(r"again +(.+)", done.stdout)]
    assert len(commands) == len(CONVICTED)
    for command in commands:
        again = _run([HOLDFAST, *command[1:]], here)
        assert again.returncode == 1, again.stderr
        assert "1 critical cell failed" in again.stdout


def test_the_two_specs_differ_in_the_agent_alone() -> None:
    good, careless = (version.spec.read_text() for version in VERSIONS)
    assert good != careless
    assert good.replace("good finance", "careless finance").replace(":good", ":careless") == careless


def test_the_demo_runs_from_a_copy_in_a_folder_with_spaces(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "my finance")
    done = _run([HOLDFAST, "contract", "run", "-c", "my finance/careless.yaml"], tmp_path)
    command = shlex.split(re.findall(r"again +(.+)", done.stdout)[0])
    assert command[4] == "my finance/careless.yaml"
    assert _run([HOLDFAST, *command[1:]], tmp_path).returncode == 1


def test_demo_refuses_arguments(tmp_path: Path) -> None:
    assert _run([HOLDFAST, "demo", "more"], tmp_path).returncode == 4


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ({}, ""),
        ({("always-cite-source", "no-chaos"): "fail"}, "always-cite-source in no-chaos should have passed"),
        ({("always-cite-source", "llm-degraded"): "pass"}, "always-cite-source in llm-degraded should have failed"),
        ({("always-cite-source", "llm-degraded"): "unproven"}, "always-cite-source in llm-degraded was not decided"),
    ],
)
def test_anything_else_than_the_two_convictions_is_a_surprise(outcomes, told: str) -> None:
    expected = dict.fromkeys(CONVICTED, "fail") | {("always-cite-source", "no-chaos"): "pass"} | outcomes
    cells = [Cell(rule, scenario, "critical", 3.0, outcome) for (rule, scenario), outcome in expected.items()]
    assert surprise(VERSIONS[1], cells) == (f"the careless agent: {told}" if told else "")
