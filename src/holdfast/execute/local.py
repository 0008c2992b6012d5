"""The local executor: so many trials at once on one Site, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from time import perf_counter

from holdfast.execute.context import Met, Saw
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

Started = Callable[[Trial], None]
Store = Callable[[Trial, Observation], Observation]
"""Keeps what was seen; what it is from then on."""
Observed = tuple[Trial, Observation]
Run = Callable[[Trial], Awaitable[Observation]]

BREATH_S = 0.05
"""How long trials that never wait may keep the loop from its signals: a Ctrl-C must not seem lost."""


def execute(
    site: Site,
    trials: Iterable[Trial],
    *,
    started: Started | None = None,
    on_fault: Met | None = None,
    on_call: Saw | None = None,
    store: Store | None = None,
) -> AsyncGenerator[Observed, None]:
    """Gives each trial with its observation, as they end. One task per slot, none per trial.

    `store` is called before the slot takes up its next trial, so that a kill loses only what is in flight.
    """
    feed = iter(trials) if started is None else _told(trials, started)
    run = partial(run_trial, site, on_fault=on_fault, on_call=on_call)
    return _one_by_one(run, feed, store) if site.concurrency == 1 else _side_by_side(run, feed, store, site.concurrency)


def _told(trials: Iterable[Trial], started: Started) -> Iterator[Trial]:
    """The trials, each told of when a slot takes it up."""
    for trial in trials:
        started(trial)
        yield trial


async def _one_by_one(run: Run, feed: Iterator[Trial], store: Store | None) -> AsyncGenerator[Observed, None]:
    breath = perf_counter()
    for trial in feed:
        seen = await run(trial)
        if store is not None:
            seen = store(trial, seen)
        yield trial, seen
        if perf_counter() - breath > BREATH_S:
            await asyncio.sleep(0)
            breath = perf_counter()


async def _side_by_side(
    run: Run, feed: Iterator[Trial], store: Store | None, at_once: int
) -> AsyncGenerator[Observed, None]:
    ended: asyncio.Queue[Observed | None] = asyncio.Queue(at_once)  # slots wait for a judge that is far behind
    over = asyncio.Event()  # nobody takes from the queue any more: a full one would hold a slot for ever

    async def tell(one: Observed | None) -> None:
        if not over.is_set():
            await ended.put(one)

    async def slot() -> None:
        try:
            for trial in feed:
                seen = await run(trial)
                if store is not None:
                    seen = store(trial, seen)
                await tell((trial, seen))
                if over.is_set():
                    return
        finally:
            await tell(None)

    slots = [asyncio.create_task(slot()) for _ in range(at_once)]
    left = len(slots)
    try:
        while left:
            one = await ended.get()
            if one is None:
                left -= 1
            else:
                yield one
    finally:
        over.set()
        for task in slots:
            task.cancel()
        results = await asyncio.gather(*slots, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
