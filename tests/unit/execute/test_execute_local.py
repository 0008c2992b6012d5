"""The local executor: so many at once, each as it ends, and nothing left when it is stopped."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from execute_sites import says, site_of, trial_of
from holdfast.execute import local
from holdfast.execute.local import LocalExecutor
from holdfast.model.observation import Answer, Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.protocols.trial import TrialContext


class Crowd:
    """An agent that waits as long as its prompt says, and counts who is there."""

    def __init__(self) -> None:
        self.now = self.most = self.begun = 0

    async def __call__(self, task: Task, context: TrialContext) -> Answer:
        self.begun += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(float(task.prompt))
        finally:
            self.now -= 1
        return Answer((Turn(task.prompt, "ok"),))


def run(crowd: Crowd, waits: list[str], concurrency: int, stop_after: int | None = None) -> list[str]:
    async def all_of_them() -> list[str]:
        site = site_of(crowd, concurrency=concurrency)
        ended: list[str] = []
        trials = LocalExecutor(site).execute((trial_of(wait, n=n) for n, wait in enumerate(waits)))
        async for trial, seen in trials:
            assert seen.trial == trial.id
            ended.append(trial.task.prompt)
            if len(ended) == stop_after:
                break
        await trials.aclose()  # type: ignore[attr-defined]
        return ended

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("concurrency", [1, 3])
def test_so_many_trials_run_at_once(concurrency: int) -> None:
    crowd = Crowd()
    assert len(run(crowd, ["0.01"] * 12, concurrency)) == 12
    assert crowd.most == concurrency


def test_each_trial_is_given_as_it_ends() -> None:
    assert run(Crowd(), ["0.2", "0.01", "0.05"], 3) == ["0.01", "0.05", "0.2"]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_no_trial_goes_on_when_the_run_is_stopped(concurrency: int) -> None:
    crowd = Crowd()
    run(crowd, ["0.01"] + ["60"] * 20, concurrency, stop_after=1)
    assert crowd.now == 0
    assert crowd.begun <= concurrency + 1


def test_no_trials_end_at_once() -> None:
    assert run(Crowd(), [], 4) == []


def test_starts_are_reported() -> None:
    started: list[Trial] = []

    async def use() -> None:
        site = site_of(says("ok"), concurrency=2)
        async for _ in LocalExecutor(site).execute([trial_of(n=n) for n in range(5)], started=started.append):
            pass

    asyncio.run(use())
    assert [trial.id for trial in started] == [f"{n:012x}" for n in range(5)]


def test_a_feed_that_breaks_is_reported() -> None:
    def feed() -> object:
        yield trial_of()
        raise OSError("disk full")

    async def use() -> None:
        async for _ in LocalExecutor(site_of(says("ok"), concurrency=2)).execute(feed()):  # type: ignore[arg-type]
            pass

    with pytest.raises(OSError, match="disk full"):
        asyncio.run(use())


# Closing the executor in the middle: no slot may be held up by results that nobody takes.


TRIALS = [Trial(f"{n:012x}", "contract", Scenario("calm"), Task(("hi",))) for n in range(50)]


class Site:
    concurrency = 3


async def _at_once(site: Any, trial: Trial, on_fault: Any, on_call: Any) -> Observation:
    await asyncio.sleep(0)
    return Observation(trial.id)


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
