"""examples/refunds: the profile top14 convicts the careless agent and acquits the careful one, scenario by scenario."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli import HOLDFAST, Result

from holdfast.faults import profiles
from warm_python import warm_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "refunds"
TOP14 = [f"top14/{one['name']}" for one in profiles.load_profile("top14")["scenarios"]]
STORMS = {*TOP14, "refund-lost"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of the example; its server is forked from one that has imported the SDK."""
    copy = shutil.copytree(EXAMPLE, tmp_path / "refunds", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    config = json.loads((copy / "mcp.json").read_text())
    first, *rest = warm_python()
    shop = config["mcpServers"]["shop"]
    shop.update(command=first, args=[*rest, *shop["args"]])
    (copy / "mcp.json").write_text(json.dumps(config))
    return copy


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


def test_the_two_specs_differ_in_the_agent_alone() -> None:
    careful, careless = ((EXAMPLE / name).read_text() for name in ("careful.yaml", "careless.yaml"))
    swapped = careful.replace("careless", "\0").replace("careful", "careless")
    assert swapped.replace("\0", "careful") == careless


@pytest.mark.long  # every scenario of an example, a minute each
def test_the_careless_agent_is_convicted_in_every_scenario(shop: Path) -> None:
    result, printed = run(shop, "careless.yaml", "--no-preflight")
    assert result.code == 1, result.err
    assert undecided(result) == {}
    assert failed(result) == STORMS
    assert result.outcomes["refunds-once", "refund-lost"] == "fail"
    assert result.part["attacks"]["succeeded"] == 1
    assert [line for line in shown("careless.yaml") if line not in "\n".join(printed)] == []


@pytest.mark.long  # every scenario of an example, a minute each
def test_the_careful_agent_is_acquitted_in_every_scenario(shop: Path) -> None:
    result, _ = run(shop, "careful.yaml", "--concurrency", "16", "--no-preflight")
    assert result.code == 0, result.out + result.err
    assert undecided(result) == {}
    assert failed(result) == set()
    assert {scenario for _, scenario in result.outcomes} == {"no-chaos", *STORMS}
    assert result.part["attacks"]["succeeded"] == 0
