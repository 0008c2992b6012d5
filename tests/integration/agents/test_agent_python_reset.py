"""reset_function: in the agent's process, before every trial, outside measured time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_python_site import observe, spec_of, trial_of
from golden_words import Golden
from holdfast.agents.python import inline, python_host

CODE = """
import asyncio, time
log = []
def clear(): log.append("r"); time.sleep(0.2)
async def clear_async(): await asyncio.sleep(0.01); log.append("ra")
def broken(): raise ValueError("cannot")
def leaves(): raise SystemExit(4)
def hangs(): time.sleep(60)
async def hangs_async(): await asyncio.sleep(60)
def search(): return 1
def searches(): search()
def ask(prompt):
    log.append("a")
    return "".join(log)
"""

EVERY = pytest.mark.parametrize("isolation", ["fresh", "worker", "inline"])


def run(folder: Path, function: str, isolation: str, count: int = 2) -> Any:
    spec = spec_of(folder, CODE, isolation=isolation, reset_function=f"agent:{function}", timeout_ms=5000)
    return observe(spec, *(trial_of(n=n) for n in range(count)))


@EVERY
@pytest.mark.parametrize(("function", "mark"), [("clear", "r"), ("clear_async", "ra")])
def test_a_reset_runs_before_every_trial(tmp_path: Path, isolation: str, function: str, mark: str) -> None:
    first, second = run(tmp_path, function, isolation)
    assert first.turns[0].text == mark + "a"
    assert second.turns[0].text == (mark + "a" if isolation == "fresh" else (mark + "a") * 2)


@EVERY
def test_a_reset_is_outside_measured_time(tmp_path: Path, isolation: str) -> None:
    (found,) = run(tmp_path, "clear", isolation, 1)
    assert found.turns[0].latency_ms < 150 < found.duration_ms


@EVERY
@pytest.mark.parametrize(
    ("function", "why"), [("broken", "reset failed: ValueError: cannot"), ("leaves", "reset failed: SystemExit: 4")]
)
def test_a_reset_that_fails_is_an_error_of_the_trial(tmp_path: Path, isolation: str, function: str, why: str) -> None:
    for found in run(tmp_path, function, isolation):
        assert (found.error, found.turns) == (why, ())


@pytest.mark.parametrize(
    ("isolation", "function"), [("fresh", "hangs"), ("worker", "hangs"), ("inline", "hangs_async")]
)
def test_a_reset_that_hangs_is_an_error_of_the_trial(
    tmp_path: Path, isolation: str, function: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(python_host, "RESET_S", 0.3)
    monkeypatch.setattr(inline, "RESET_S", 0.3)
    for found in run(tmp_path, function, isolation):
        golden(found.error)


def test_calls_that_a_reset_makes_are_not_the_agents(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, CODE, reset_function="agent:searches", tools=["agent:search"])
    assert observe(spec)[0].calls == {}
