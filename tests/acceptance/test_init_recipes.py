"""`holdfast init --from NAME` as a person runs it, and two recipes through whole runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import HOLDFAST

PATH = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])


def holdfast(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": PATH}
    return subprocess.run([HOLDFAST, *arguments], cwd=here, env=env, capture_output=True, text=True, timeout=300)


def test_without_a_name_the_recipes_are_listed_and_nothing_is_written(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--from")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  claude-code       Claude Code 2." in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_a_usage_error_with_the_near_miss(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--from", "lang-graph")
    assert done.returncode == 4
    assert "[recipe-unknown]" in done.stderr
    assert "did you mean langgraph? " in done.stderr


def test_a_program_that_is_missing_is_told_with_the_line_to_type(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "init", "--from", "codex", "here")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["wrote here/holdfast.yaml", "wrote here/model.yaml"]
    assert "\n  npm install -g @openai/codex " in done.stdout
    assert done.stdout.endswith(" && holdfast run\n")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "server.py").write_text("mine\n")
    done = holdfast(tmp_path, "init", "--from", "mcp-server")
    assert done.returncode == 4
    assert "shop/server.py" in done.stderr
    assert "[file-exists]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


@pytest.mark.parametrize("options", [("--http",), ("--command",)])
def test_a_recipe_is_no_other_kind(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert holdfast(tmp_path, "init", "--from", "llm", *options).returncode == 4
    assert holdfast(tmp_path, "init", "--model", "openai/gpt-4o").returncode == 4
    assert list(tmp_path.iterdir()) == []


def test_a_project_is_offered_the_recipe_of_what_it_uses(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("langgraph\n")
    done = holdfast(tmp_path, "init")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("  holdfast init --from langgraph holdfast-langgraph\n")


def run(folder: Path, name: str, *scenarios: str) -> dict[str, Any]:
    """The cases by scenario, as the written files run at once."""
    assert holdfast(folder, "init", "--from", name).returncode == 0
    chosen = [word for scenario in scenarios for word in ("--scenario", scenario)]
    done = holdfast(folder, "run", "--json", "--no-report", *chosen)
    return {case["scenario"]: case for case in json.loads(done.stdout)["parts"]["scenario"]["cases"]}


@pytest.mark.long
def test_langgraph_holds_in_calm_and_says_nothing_after_arguments_that_are_not_json(tmp_path: Path) -> None:
    cases = run(tmp_path, "langgraph", "calm", "bad-arguments")
    assert {name: case["status"] for name, case in cases.items()} == {"calm": "pass", "bad-arguments": "fail"}
    broken = cases["bad-arguments"]["replicas"][0]
    assert [(fault["mode"], fault.get("effect", "met")) for fault in broken["faults"]] == [
        ("malformed_tool_call", "met")
    ]
    assert broken["turns"][0]["text"] == ""


@pytest.mark.long
def test_an_mcp_server_whose_reply_is_lost_keeps_one_order(tmp_path: Path) -> None:
    cases = run(tmp_path, "mcp-server", "calm", "order-reply-lost")
    assert {name: case["status"] for name, case in cases.items()} == {"calm": "pass", "order-reply-lost": "pass"}
    (fault,) = cases["order-reply-lost"]["replicas"][0]["faults"]
    assert (fault["mode"], fault["target"]) == ("lost_reply", "order")
