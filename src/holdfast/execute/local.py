"""The local executor: so many trials at once on one Site, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from time import perf_counter

from holdfast.execute.site import Site
from holdfast.execute.trial import Met, run_trial
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

Started = Callable[[Trial], None]
Observed = tuple[Trial, Observation]

BREATH_S = 0.05
"""How long trials that never wait may keep the loop from its signals: a Ctrl-C must not seem lost."""


def execute(
    site: Site, trials: Iterable[Trial], *, started: Started | None = None, on_fault: Met | None = None
) -> AsyncIterator[Observed]:
    """Gives each trial with its observation, as they end. One task per slot, none per trial."""
    feed = _told(trials, started)
    return _one_by_one(site, feed, on_fault) if site.concurrency == 1 else _side_by_side(site, feed, on_fault)


def _told(trials: Iterable[Trial], started: Started | None) -> Iterator[Trial]:
    """The trials, each told of when a slot takes it up."""
    for trial in trials:
        if started is not None:
            started(trial)
        yield trial


async def _one_by_one(site: Site, feed: Iterator[Trial], on_fault: Met | None) -> AsyncIterator[Observed]:
    breath = perf_counter()
    for trial in feed:
        yield trial, await run_trial(site, trial, on_fault)
        if perf_counter() - breath > BREATH_S:
            await asyncio.sleep(0)
            breath = perf_counter()


async def _side_by_side(site: Site, feed: Iterator[Trial], on_fault: Met | None) -> AsyncIterator[Observed]:
    ended: asyncio.Queue[Observed | None] = asyncio.Queue()

    async def slot() -> None:
        try:
            for trial in feed:
                ended.put_nowait((trial, await run_trial(site, trial, on_fault)))
                await ended.join()  # until it is stored: a kill loses only what is in flight, and nothing piles up
        finally:
            ended.put_nowait(None)

    slots = [asyncio.create_task(slot()) for _ in range(site.concurrency)]
    left = len(slots)
    try:
        while left:
            one = await ended.get()
            if one is None:
                left -= 1
            else:
                yield one
            ended.task_done()
    finally:
        for task in slots:
            task.cancel()
        results = await asyncio.gather(*slots, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
