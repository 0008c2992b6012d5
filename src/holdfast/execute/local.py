"""The local executor: so many trials at once on one Site, in this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import perf_counter

from holdfast.execute.site import Site
from holdfast.execute.trial import Met, run_trial
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

Started = Callable[[Trial], None]

BREATH_S = 0.05
"""How long trials that never wait may keep the loop from its signals: a Ctrl-C must not seem lost."""


async def execute(
    site: Site, trials: Iterable[Trial], *, started: Started | None = None, on_fault: Met | None = None
) -> AsyncIterator[tuple[Trial, Observation]]:
    """Gives each trial with its observation, as they end. One task per slot, none per trial."""
    feed = iter(trials)
    if site.concurrency == 1:
        breath = perf_counter()
        for trial in feed:
            if started is not None:
                started(trial)
            yield trial, await run_trial(site, trial, on_fault)
            if perf_counter() - breath > BREATH_S:
                await asyncio.sleep(0)
                breath = perf_counter()
        return
    ready: deque[tuple[Trial, Observation] | None] = deque()
    wake = asyncio.Event()

    async def slot() -> None:
        try:
            for trial in feed:
                if started is not None:
                    started(trial)
                ready.append((trial, await run_trial(site, trial, on_fault)))
                wake.set()
        finally:
            ready.append(None)
            wake.set()

    slots = [asyncio.create_task(slot()) for _ in range(site.concurrency)]
    open_slots = len(slots)
    try:
        while open_slots:
            while ready:
                ended = ready.popleft()
                if ended is None:
                    open_slots -= 1
                else:
                    yield ended
            if open_slots:
                wake.clear()
                await wake.wait()
    finally:
        for task in slots:
            task.cancel()
        results = await asyncio.gather(*slots, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
