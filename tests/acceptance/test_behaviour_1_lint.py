"""Behaviour 1: lint, as warnings. Each has an example that is warned of and one that is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from files1 import CALM, ECHO, PYTHON, SPEC, project, tell

MANY = (os.cpu_count() or 1) + 5


def rule(text: str) -> str:
    return f"contract: {{name: C, invariants: [{{id: a, {text}}}]}}\n"


@pytest.mark.parametrize(("given", "warned"), [("0.9", True), ("1", True), ("0", False), ("90", False)])
def test_min_score_of_the_command_line_is_linted(tmp_path: Path, given: str, warned: bool) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "contract", "run", "--min-score", given)
    assert told.code == 0
    assert ("--min-score is 0 to 100" in told.err) is warned


def test_more_trials_than_cores_asked_by_the_command_line_are_linted(tmp_path: Path) -> None:
    project(tmp_path, PYTHON + rule("type: latency, max_ms: 60000") + CALM, ECHO)
    told = tell(tmp_path, "contract", "run", "--concurrency", str(MANY))
    assert f"{MANY} trials in parallel" in told.err
    assert f"{MANY} trials in parallel" not in tell(tmp_path, "contract", "run", "--concurrency", "1").err


def test_warnings_do_not_change_the_exit_code_and_are_in_the_report(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "scoring: {min_score: 0.9}")
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 0
    assert "lint-min-score-fraction" in [one["code"] for one in told.json["warnings"]]
    assert "min_score" in told.err
