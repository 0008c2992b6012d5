"""Closing the executor in the middle: no slot may be held up by results that nobody takes."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from holdfast.execute import local
from holdfast.execute.local import LocalExecutor
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial

TRIALS = [Trial(f"{n:012x}", "contract", Scenario("calm"), Task(("hi",))) for n in range(50)]


class Site:
    concurrency = 3


async def _at_once(site: Any, trial: Trial, on_fault: Any, on_call: Any) -> Observation:
    await asyncio.sleep(0)
    return Observation(trial.id)


@pytest.mark.parametrize("taken", [0, 1, 7])
def test_closing_while_the_queue_is_full_ends_at_once(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(local, "run_trial", _at_once)

    async def use() -> None:
        ended = LocalExecutor(Site()).execute(TRIALS)  # type: ignore[arg-type]
        for _ in range(taken + 1):
            await anext(ended)
        for _ in range(10):
            await asyncio.sleep(0)  # the slots fill the queue and wait
        await asyncio.wait_for(ended.aclose(), 5)

    asyncio.run(use())


def test_a_trial_that_swallows_its_cancelling_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stubborn(site: Any, trial: Trial, on_fault: Any, on_call: Any) -> Observation:
        if trial in TRIALS[:4]:
            return await _at_once(site, trial, on_fault, on_call)
        with suppress(asyncio.CancelledError):  # as where something breaks while a world is closed
            await asyncio.sleep(60)
        return Observation(trial.id)

    monkeypatch.setattr(local, "run_trial", stubborn)

    async def use() -> None:
        ended = LocalExecutor(Site()).execute(TRIALS)  # type: ignore[arg-type]
        await anext(ended)
        for _ in range(10):
            await asyncio.sleep(0)  # three results wait, the queue is full, and three slots are at work
        await asyncio.wait_for(ended.aclose(), 5)

    asyncio.run(use())


def test_a_slot_that_breaks_ends_the_execution_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(site: Any, trial: Trial, on_fault: Any, on_call: Any) -> Observation:
        if trial is TRIALS[5]:
            raise RuntimeError("ours")
        return await _at_once(site, trial, on_fault, on_call)

    monkeypatch.setattr(local, "run_trial", breaks)

    async def use() -> list[Any]:
        return [one async for one in LocalExecutor(Site()).execute(TRIALS)]  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match="ours"):
        asyncio.run(asyncio.wait_for(use(), 5))


def test_a_slot_that_fails_ends_the_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "run_trial", _at_once)
    stored: list[str] = []

    def store(trial: Trial, seen: Observation) -> Observation:
        if len(stored) == 5:
            raise OSError("no space left")
        stored.append(trial.id)
        return seen

    async def use() -> None:
        async for _ in LocalExecutor(Site()).execute(TRIALS, store=store):  # type: ignore[arg-type]
            pass

    with pytest.raises(OSError, match="no space left"):
        asyncio.run(use())
    assert len(stored) == 5


def test_a_trial_that_ends_while_another_one_is_judged_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    async def staggered(site: Any, trial: Trial, on_fault: Any, on_call: Any) -> Observation:
        await asyncio.sleep(0 if trial is TRIALS[0] else 0.01)
        return Observation(trial.id)

    monkeypatch.setattr(local, "run_trial", staggered)
    stored: list[str] = []

    def store(trial: Trial, seen: Observation) -> Observation:
        stored.append(trial.id)
        return seen

    async def use() -> None:
        ended = LocalExecutor(Site()).execute(TRIALS[:3], store=store)  # type: ignore[arg-type]
        await anext(ended)
        await asyncio.sleep(0.1)  # a judge that asks a model
        await ended.aclose()  # as a Ctrl-C does

    asyncio.run(use())
    assert sorted(stored) == [trial.id for trial in TRIALS[:3]]
