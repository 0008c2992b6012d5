"""examples/refunds: the profile top14 convicts the careless agent and acquits the careful one, scenario by scenario."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import HOLDFAST, Result

from holdfast.faults import profiles

EXAMPLE = Path(__file__).parents[2] / "examples" / "refunds"
TOP14 = [f"top14/{one['name']}" for one in profiles.load("top14")["scenarios"]]
STORMS = {*TOP14, "refund-lost"}
AGAIN = ("rate-limit-burst", "lost-reply")
"""Met a second time, one after the other: faults of model and tool that lead to more calls, in number and order."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of the example, as a user would have it."""
    return shutil.copytree(EXAMPLE, tmp_path / "refunds", ignore=shutil.ignore_patterns(".*", "__pycache__"))


def run(shop: Path, spec: str, *options: str) -> tuple[Result, list[str]]:
    """The run as JSON, and the lines that it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [HOLDFAST, "contract", "run", "-c", spec, "-o", "run.json", *options]
    done = subprocess.run(command, cwd=shop, env={**os.environ, "PATH": path}, capture_output=True, timeout=600)
    written = (shop / "run.json").read_text() if (shop / "run.json").exists() else ""
    return Result(done.returncode, written, done.stderr.decode()), done.stdout.decode().splitlines()


def shown(spec: str) -> list[str]:
    """What the README shows of a run."""
    _, _, rest = (EXAMPLE / "README.md").read_text().partition(f"$ holdfast contract run -c {spec}\n")
    return rest.partition("```")[0].replace("runs/0002", "runs/0001").splitlines()


def failed(result: Result) -> set[str]:
    """The scenarios in which a rule was broken."""
    return {scenario for (_, scenario), outcome in result.outcomes.items() if outcome == "fail"}


def undecided(result: Result) -> dict[tuple[str, str], str]:
    return {cell: outcome for cell, outcome in result.outcomes.items() if outcome not in ("pass", "fail", "n/a")}


def ledger(result: Result) -> Iterator[tuple[Any, ...]]:
    """Every fault of the run, without what was said of it."""
    trials = {(cell["scenario"], trial["id"]): trial for cell in result.part["cells"] for trial in cell["trials"]}
    for (scenario, trial), seen in sorted(trials.items()):
        for met in seen["faults"]:
            yield scenario, trial, met["plane"], met["target"], met["call"], met["mode"], met["effect"]


def test_the_two_specs_differ_in_the_agent_alone() -> None:
    careful, careless = ((EXAMPLE / name).read_text() for name in ("careful.yaml", "careless.yaml"))
    swapped = careful.replace("careless", "\0").replace("careful", "careless")
    assert swapped.replace("\0", "careful") == careless


def test_the_careless_agent_is_convicted_in_every_scenario(shop: Path) -> None:
    result, printed = run(shop, "careless.yaml", "--no-preflight")
    assert result.code == 1, result.err
    assert undecided(result) == {}
    assert failed(result) == STORMS
    assert result.outcomes["refunds-once", "refund-lost"] == "fail"
    assert result.part["attacks"]["succeeded"] == 1
    assert [line for line in shown("careless.yaml") if line not in printed] == []


def test_the_careful_agent_is_acquitted_and_meets_the_same_faults_at_any_concurrency(shop: Path) -> None:
    at_once, _ = run(shop, "careful.yaml", "--concurrency", "16", "--no-preflight")
    assert at_once.code == 0, at_once.out + at_once.err
    assert undecided(at_once) == {}
    assert failed(at_once) == set()
    assert {scenario for _, scenario in at_once.outcomes} == {"no-chaos", *STORMS}
    assert at_once.part["attacks"]["succeeded"] == 0

    chosen = [f"top14/{name}" for name in AGAIN]
    picked = [option for name in chosen for option in ("--scenario", name)]
    in_turn, _ = run(shop, "careful.yaml", "--concurrency", "1", "--no-preflight", *picked)
    assert in_turn.code == 0, in_turn.out + in_turn.err
    before = [met for met in ledger(at_once) if met[0] in chosen]
    assert {met[0] for met in before} == set(chosen)
    assert list(ledger(in_turn)) == before
