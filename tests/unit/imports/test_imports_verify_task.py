"""The script of an imported task: where paths go, and what counts as passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.imports.verify_task import by_pytest, by_reward, moved

SUMMARY = "=== short test summary info ===\n"


def test_only_whole_paths_are_moved() -> None:
    paths = {"/app": "/workspace", "/tests": "/t/tests"}
    said = "cd /app; /app/x '/app' $HOME/app /app.py /application /app-2 ~/app See /app. /tests/a /x/tests"
    assert moved(said, paths) == (
        "cd /workspace; /workspace/x '/workspace' $HOME/app /app.py /application /app-2 ~/app See /workspace. "
        "/t/tests/a /x/tests"
    )
    assert moved("as it is", {}) == "as it is"


@pytest.mark.parametrize(
    ("name", "text", "passed", "score"),
    [
        ("reward.txt", "1\n", True, 1.0),
        ("reward.txt", "0.5", False, 0.5),
        ("reward.json", '{"reward": 1, "speed": 0}', True, 1.0),
        ("reward.json", '{"a": 1, "b": 0}', False, 0.5),
    ],
)
def test_a_reward_is_read_as_harbor_does(tmp_path: Path, name: str, text: str, passed: bool, score: float) -> None:
    (tmp_path / "logs/verifier").mkdir(parents=True)
    (tmp_path / "logs/verifier" / name).write_text(text)
    found = by_reward(str(tmp_path), "")
    assert (found["passed"], found["score"]) == (passed, score)


@pytest.mark.parametrize("text", ["nan", None])
def test_no_reward_is_an_error_and_no_verdict(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "logs/verifier").mkdir(parents=True)
    if text is not None:
        (tmp_path / "logs/verifier/reward.txt").write_text(text)
    with pytest.raises(SystemExit, match="reward"):
        by_reward(str(tmp_path), "")


def test_every_test_of_pytest_has_to_pass() -> None:
    assert by_pytest(SUMMARY + "PASSED a.py::x\nSKIPPED [1] a.py:3\n")["passed"] is True
    failed = by_pytest(SUMMARY + "PASSED a.py::x\nFAILED a.py::y - assert 0\n= 1 failed =\n")
    assert (failed["passed"], failed["reason"]) == (False, "1 of 2 tests passed")
    skipped = by_pytest(SUMMARY + "PASSED a.py::x\nSKIPPED [1] a.py:3\n")
    assert skipped["reason"] == "1 of 2 tests passed, 1 skipped"
    for said in ("", SUMMARY):
        with pytest.raises(SystemExit, match="no summary"):
            by_pytest(said)


def test_where_every_test_was_skipped_nothing_passed() -> None:
    for said in ("SKIPPED [2] a.py:3: no network\n", "SKIPPED [1] a.py:3\nXFAIL a.py::y\n"):
        with pytest.raises(SystemExit, match="no test passed or failed"):
            by_pytest(SUMMARY + said)


@pytest.mark.parametrize(
    "said", ["/usr/bin/python3: No module named pytest\n", "run-tests.sh: line 3: pytest: command not found\n"]
)
def test_where_pytest_is_not_installed_it_is_said_how(said: str) -> None:
    with pytest.raises(SystemExit, match="pip install pytest"):
        by_pytest(said)
    assert by_pytest(said + SUMMARY + "PASSED a.py::x\n")["passed"] is True
