"""The local executor: so many at once, each as it ends, and nothing left when it is stopped."""

from __future__ import annotations

import asyncio

import pytest

from execute_sites import says, site_of, trial_of
from holdfast.execute.local import LocalExecutor
from holdfast.model.observation import Answer, Turn
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
