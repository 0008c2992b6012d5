"""Each recipe with the real program or library from its registry: `make test-agents`, one of them with `-k NAME`.

Installs are kept below .venv-agents, a folder each. A program of another version than the recipe's is tried, too:
where it behaves otherwise, `found` in its recipe.yaml and the page of the examples are to be written anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from holdfast.starter.recipe import Recipe, find_version, list_names, read_recipe

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".venv-agents"
LIMIT_S = 1200


def installed(name: str, recipe: Recipe) -> list[Path]:
    """Folders of programs with the recipe's own in the first; Holdfast itself lies beside a library."""
    home = KEPT / name
    done = home / "installed.txt"
    if not done.exists() or done.read_text() != recipe.install:
        home.mkdir(parents=True, exist_ok=True)
        if recipe.npm:
            command(["npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", *recipe.npm])
        else:
            command([sys.executable, "-m", "venv", str(home)])
            beside = [] if recipe.program else ["-e", str(ROOT)]
            command([str(home / "bin/python"), "-m", "pip", "install", "--quiet", *recipe.pip, *beside])
        done.write_text(recipe.install)
    own = home / ("node_modules/.bin" if recipe.npm else "bin")
    return [own] if not recipe.program else [Path(sys.executable).parent, own]


def command(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", list_names())
def test_calm_is_green_faults_are_met_and_the_verdict_is_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = read_recipe(name)
    folders = installed(name, recipe)
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    holdfast = str(folders[0] / "holdfast")
    written = subprocess.run([holdfast, "init", "--from", name], cwd=tmp_path, capture_output=True, text=True)
    assert written.returncode == 0, written.stderr
    done = subprocess.run([holdfast, "run", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    version = find_version(recipe) if recipe.program else "beside Holdfast"
    assert '"parts"' in done.stdout, f"{version}: {done.stderr}"
    cases = {case["scenario"]: case for case in json.loads(done.stdout)["parts"]["scenario"]["cases"]}
    assert {scenario: case["status"] for scenario, case in cases.items()} == recipe.found, f"{version}: {done.stdout}"
    for scenario, case in cases.items():
        met = [fault for fault in case["replicas"][0]["faults"] if fault.get("effect", "met") == "met"]
        assert bool(met) == (scenario != "calm"), scenario
    assert done.returncode == ("fail" in recipe.found.values())


HUNTED = ("langgraph", "pydantic-ai")
"""Recipes with weaknesses that a hunt has been tried on; each takes some minutes."""


@pytest.mark.parametrize("name", HUNTED)
def test_a_hunt_without_scenarios_finds_what_the_scenarios_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = read_recipe(name)
    folders = installed(name, recipe)
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    holdfast, file = str(folders[0] / "holdfast"), tmp_path / "holdfast.yaml"
    subprocess.run([holdfast, "init", "--from", name], cwd=tmp_path, check=True, capture_output=True)
    spec = yaml.safe_load(file.read_text())
    weak = [one for one in spec.pop("chaos_matrix") if recipe.found[one["name"]] == "fail"]
    spec["agent"]["timeout"] = "30s"  # what hangs shall not take all day
    file.write_text(yaml.safe_dump(spec))
    words = [holdfast, "hunt", "--json", "--order", "1", "--max-trials", "300"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=3 * LIMIT_S)
    assert done.returncode == 1, done.stdout + done.stderr
    rows = [row["states"] for row in json.loads(done.stdout)["matrix"]]
    failed = {mode for states in rows for mode, state in states.items() if state == "failed"}
    lists = [faults for one in weak for faults in one.values() if isinstance(faults, list)]
    assert {fault["mode"] for faults in lists for fault in faults} <= failed
