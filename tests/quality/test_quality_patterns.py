"""examples/patterns: each holds with the good agent and is broken by the bad one, for the reason that it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples" / "patterns"
HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
NEEDS = {"tests": ("npm", "git"), "books": (), "api": ("curl",)}
BROKEN = {
    "tests": {"no_console_log"},
    "books": {"reconciliation_clean", "email_sent_once", "email_quality"},
    "api": {"api_responses_valid"},
}
COMPOSITES = {
    ("tests", "good"): 1.0,
    ("tests", "bad"): 1.2 / 1.5,
    ("books", "good"): 0.98,
    ("books", "bad"): 0.0,
    ("api", "good"): 1.0,
    ("api", "bad"): 0.5,
}
PATTERNS = pytest.mark.parametrize("pattern", NEEDS)


def ran(folder: Path, spec: str) -> tuple[int, dict[str, Any]]:
    command = [HOLDFAST, "run", "-c", spec, "--json", "--no-preflight"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    (case,) = json.loads(done.stdout)["parts"]["scenario"]["cases"]
    return done.returncode, case


def needed(pattern: str) -> None:
    missing = [program for program in NEEDS[pattern] if shutil.which(program) is None]
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")


@PATTERNS
@pytest.mark.parametrize("agent", ["good", "bad"])
def test_a_pattern(tmp_path: Path, pattern: str, agent: str) -> None:
    needed(pattern)
    folder = shutil.copytree(EXAMPLES / pattern, tmp_path / pattern, ignore=shutil.ignore_patterns(".holdfast"))
    code, case = ran(folder, f"{agent}.yaml")
    (replica,) = case["replicas"]
    failed = {verdict["invariant"] for verdict in replica["verdicts"] if verdict["outcome"] == "fail"}
    assert (code, case["status"]) == ((0, "pass") if agent == "good" else (1, "fail"))
    assert failed == (set() if agent == "good" else BROKEN[pattern])
    assert case["composite"] == pytest.approx(COMPOSITES[pattern, agent])


@PATTERNS
def test_the_two_files_of_a_pattern_differ_in_the_agent_alone(pattern: str) -> None:
    good, bad = (yaml.safe_load((EXAMPLES / pattern / f"{name}.yaml").read_text()) for name in ("good", "bad"))
    assert good.pop("agent") != bad.pop("agent")
    assert good == bad


def test_a_gate_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """The first pattern with an agent that does nothing: the tests fail, and there is no diff to measure."""
    needed("tests")
    folder = shutil.copytree(EXAMPLES / "tests", tmp_path / "tests")
    text = re.sub(r"sh good.sh", "true", (folder / "good.yaml").read_text())
    (folder / "idle.yaml").write_text(text)
    code, case = ran(folder, "idle.yaml")
    reasons = {v["invariant"]: v["reason"] for v in case["replicas"][0]["verdicts"]}
    assert (code, case["status"], case["composite"]) == (1, "fail", 0.0)
    assert "exited with 1" in reasons["tests_pass"]
    assert "-lt" in reasons["small_diff"] or "exited with 2" in reasons["small_diff"]
