"""The local executor: runs a number of trials in parallel on one Site, in this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from time import perf_counter

from holdfast.execute.injector import OnFault
from holdfast.execute.site import Site
from holdfast.execute.trace_sink import OnCall
from holdfast.execute.trial import run_trial
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

OnStart = Callable[[Trial], None]
Store = Callable[[Trial, Observation], Observation]
"""Stores an observation and returns its stored form."""
Observed = tuple[Trial, Observation]
RunTrial = Callable[[Trial], Awaitable[Observation]]

BREATH_S = 0.05
"""How long trials that never wait may keep the loop from handling signals: a Ctrl-C must not seem lost."""


class LocalExecutor:
    """The Executor of this process."""

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def notes(self) -> tuple[RunNote, ...]:
        return self.site.notes

    @property
    def concurrency(self) -> int:
        return self.site.concurrency

    def use_one_slot(self) -> None:
        self.site.concurrency = 1

    def execute(
        self,
        trials: Iterable[Trial],
        *,
        started: OnStart | None = None,
        on_fault: OnFault | None = None,
        on_call: OnCall | None = None,
        store: Store | None = None,
    ) -> AsyncGenerator[Observed, None]:
        return execute(self.site, trials, started=started, on_fault=on_fault, on_call=on_call, store=store)

    async def close(self) -> None:
        await self.site.close()


def execute(
    site: Site,
    trials: Iterable[Trial],
    *,
    started: OnStart | None = None,
    on_fault: OnFault | None = None,
    on_call: OnCall | None = None,
    store: Store | None = None,
) -> AsyncGenerator[Observed, None]:
    """Yield each trial with its observation as they end. One task per slot, none per trial.

    `store` is called before the slot starts its next trial, so a kill loses only running trials.
    """
    feed = iter(trials) if started is None else _announce_trials(trials, started)
    run = partial(run_trial, site, on_fault=on_fault, on_call=on_call)
    return (
        _run_serially(run, feed, store)
        if site.concurrency == 1
        else _run_in_parallel(run, feed, store, site.concurrency)
    )


def _announce_trials(trials: Iterable[Trial], started: OnStart) -> Iterator[Trial]:
    """Yield the trials; `started` is called when a slot takes one."""
    for trial in trials:
        started(trial)
        yield trial


async def _run_serially(run: RunTrial, feed: Iterator[Trial], store: Store | None) -> AsyncGenerator[Observed, None]:
    breath = perf_counter()
    for trial in feed:
        observation = await run(trial)
        if store is not None:
            observation = store(trial, observation)
        yield trial, observation
        if perf_counter() - breath > BREATH_S:
            await asyncio.sleep(0)
            breath = perf_counter()


async def _run_in_parallel(
    run: RunTrial, feed: Iterator[Trial], store: Store | None, at_once: int
) -> AsyncGenerator[Observed, None]:
    ended = _EndedTrials(at_once)

    async def run_slot() -> None:
        for trial in feed:
            observation = await run(trial)
            if store is not None:
                observation = store(trial, observation)
            ended.add((trial, observation))
            if ended.over:
                return
            if ended.is_full:
                await ended.wait_until_taken()

    # Slots share one iterator, so a free slot takes the next trial, and there are never more tasks than slots. Slots
    # wait when the judge is far behind: otherwise observations would pile up in memory.
    slots = [asyncio.create_task(run_slot()) for _ in range(at_once)]
    for task in slots:
        task.add_done_callback(ended.on_slot_end)
    try:
        while await ended.wait_for_more():
            while ended.trials:
                yield ended.trials.popleft()
    finally:
        ended.over = True
        for task in slots:
            task.cancel()
        results = await asyncio.gather(*slots, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


class _EndedTrials:
    """The ended trials that the judge has not taken yet. It uses two futures: a queue costs fifteen calls per trial."""

    def __init__(self, slots: int) -> None:
        self.trials: deque[Observed] = deque()
        self.over = False
        """The judge has stopped, or a slot has failed: no slot starts another trial."""
        self._slots = self._limit = slots
        self._more: asyncio.Future[None] | None = None
        self._taken: asyncio.Future[None] | None = None

    def add(self, one: Observed) -> None:
        self.trials.append(one)
        self._wake()

    def on_slot_end(self, slot: asyncio.Task[None]) -> None:
        self._slots -= 1
        self.over = self.over or (not slot.cancelled() and slot.exception() is not None)
        self._wake()

    @property
    def is_full(self) -> bool:
        """Whether slots must wait because the judge is far behind."""
        return len(self.trials) >= self._limit

    async def wait_until_taken(self) -> None:
        """Wait until the judge has taken everything."""
        if self._taken is None:
            self._taken = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._taken)  # cancelling one slot must not cancel the wait of the others

    async def wait_for_more(self) -> bool:
        """Wait for the next trial; False once every slot is over and nothing is left, or one has failed."""
        if self._taken is not None:
            self._taken.set_result(None)
            self._taken = None
        if not self.trials and self._slots and not self.over:
            self._more = asyncio.get_running_loop().create_future()
            await self._more
            self._more = None
        return bool(self.trials or (self._slots and not self.over))

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
