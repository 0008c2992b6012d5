"""The fixture of tests in Python: what was seen, and the same checks."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast as package
from error_code import has_code
from holdfast.api.fixture import Holdfast
from holdfast.errors import AgentUnavailable, UsageError


def find_item(name: str) -> str:
    return "$24.90"


def answer(question: str) -> str:
    print("thinking")
    try:
        return f"It costs {find_item('kettle')}."
    except Exception:
        return "I cannot see the stock."


@pytest.fixture
def holdfast(tmp_path: Path) -> Holdfast:
    return Holdfast(lambda: tmp_path / "runs")


def asked(holdfast: Holdfast, *faults: Any, **given: Any) -> Any:
    return holdfast.run(answer, "What?", tools=[find_item], faults=faults, isolation="inline", **given)


def test_it_tells_what_was_answered_called_and_met(holdfast: Holdfast) -> None:
    calm = asked(holdfast)
    assert (calm.answer, calm.ending, calm.met, calm.output) == ("It costs $24.90.", "answered", (), "thinking\n")
    assert (calm.called("find_item"), calm.called("other")) == (1, 0)
    broken = asked(holdfast, holdfast.fault("tool", "error", tool="find_item"))
    assert [(fault.target, fault.mode) for fault in broken.met] == [("find_item", "error")]
    broken.check("contains", value="cannot see")
    broken.check("regex", pattern=r"\$", negate=True)
    broken.check("tool_called", tool="find_item", at_most=1)


def test_what_does_not_hold_is_an_assertion_with_its_reason(holdfast: Holdfast) -> None:
    with pytest.raises(AssertionError) as failed:
        asked(holdfast).check("contains", value="$25")
    lines = str(failed.value).splitlines()
    assert lines[0] == "contains failed"
    assert [line.split()[0] for line in lines[1:]] == ["asked", "answered", "because"]
    assert "'$25' does not appear" in lines[-1]


def test_a_fault_that_was_never_met_proves_nothing(holdfast: Holdfast) -> None:
    seen = asked(holdfast, holdfast.fault("tool", "error", tool="find_item", after_calls=5))
    assert not seen.met
    with pytest.raises(AssertionError, match="contains unproven"):
        seen.check("contains", value="$24.90")
    with pytest.raises(AssertionError, match="contains failed"):
        seen.check("contains", value="$25")


def test_our_own_failure_is_neither_a_pass_nor_a_fail(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*given: object) -> object:
        raise OSError("no more files")

    monkeypatch.setattr("holdfast.agents.python.inline.InlineAgent.run", breaks)
    seen = asked(holdfast)
    with pytest.raises(AssertionError, match="completes harness error"):
        seen.check("completes")


def test_an_agent_that_exits_ends_its_trial(holdfast: Holdfast) -> None:
    seen = holdfast.run(lambda question: sys.exit(3), "x", isolation="inline")
    assert seen.ending == "raised"
    with pytest.raises(AssertionError, match="SystemExit: 3"):
        seen.check("completes")


@pytest.mark.processes
def test_a_check_that_must_be_known_before_says_so_and_is_kept_where_it_was(holdfast: Holdfast) -> None:
    with pytest.raises(UsageError, check=has_code("run-over")):
        asked(holdfast).check("behavior_unchanged")
    unchanged = holdfast.check("behavior_unchanged")
    asked(holdfast, checks=[unchanged]).check("behavior_unchanged")
    broken = asked(holdfast, holdfast.fault("tool", "error", tool="find_item"), checks=[unchanged])
    with pytest.raises(AssertionError, match="behavior_unchanged failed"):
        broken.check("behavior_unchanged")


def test_what_is_misspelt_is_reported_at_the_line_of_the_test(holdfast: Holdfast) -> None:
    with pytest.raises(package.SpecError) as refused:
        asked(holdfast).check("contains", valu="x")
    assert "test_api_fixture.py:" in str(refused.value)
    assert "unknown key" in str(refused.value)
    with pytest.raises(package.SpecError):
        asked(holdfast, timeouts=3)


def test_what_is_not_a_fault_and_no_check_is_reported(holdfast: Holdfast) -> None:
    with pytest.raises(UsageError, check=has_code("argument-invalid")):
        asked(holdfast, "error")
    with pytest.raises(UsageError, check=has_code("argument-invalid")):
        asked(holdfast, checks="contains")
    with pytest.raises(UsageError, check=has_code("argument-invalid")):
        holdfast.run(answer, "?", faults=holdfast.fault("tool", "error", tool="x"))  # type: ignore[arg-type]


def test_an_agent_that_cannot_be_used_is_reported_without_our_frames(holdfast: Holdfast) -> None:
    with pytest.raises(AgentUnavailable) as gone:
        holdfast.run("nowhere_at_all:answer", "x", isolation="inline")
    assert len(gone.traceback) == 2


def test_it_can_be_awaited(holdfast: Holdfast) -> None:
    async def ask() -> str | None:
        return (await holdfast.run_async(answer, "What?", tools=[find_item], isolation="inline")).answer

    assert asyncio.run(ask()) == "It costs $24.90."


@pytest.mark.processes
def test_a_fresh_process_imports_what_this_one_can(holdfast: Holdfast) -> None:
    assert holdfast.run(answer, "What?", tools=[find_item]).answer == "It costs $24.90."
