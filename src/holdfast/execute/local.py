"""The local executor: runs a number of trials in parallel on one Site, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

from holdfast.execute.context import OnFault
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
RunTrial = Callable[[Trial], Coroutine[Any, Any, Observation]]

YIELD_S = 0.05
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
        feed = iter(trials) if started is None else _announce_trials(trials, started)
        run = partial(run_trial, self.site, on_fault=on_fault, on_call=on_call)
        keep: Store = store or (lambda trial, observation: observation)
        if self.concurrency == 1:
            return _run_serially(run, feed, keep)
        return _run_in_parallel(run, feed, keep, self.concurrency)

    async def close(self) -> None:
        await self.site.close()


def _announce_trials(trials: Iterable[Trial], started: OnStart) -> Iterator[Trial]:
    """Yield the trials; `started` is called when a slot takes one."""
    for trial in trials:
        started(trial)
        yield trial


async def _run_serially(run: RunTrial, feed: Iterator[Trial], keep: Store) -> AsyncGenerator[Observed, None]:
    breath = perf_counter()
    for trial in feed:
        yield trial, keep(trial, await run(trial))
        # An inline agent may never wait for anything, and then neither would this loop: signals are handled between two
        # callbacks only.
        if perf_counter() - breath > YIELD_S:
            await asyncio.sleep(0)
            breath = perf_counter()


async def _run_in_parallel(
    run: RunTrial, feed: Iterator[Trial], keep: Store, slots: int
) -> AsyncGenerator[Observed, None]:
    async def run_and_keep(trial: Trial) -> Observed:
        # Each trial is stored by its own task: others end while the judge has one, and a Ctrl-C must not lose them.
        return trial, keep(trial, await run(trial))

    running: list[asyncio.Task[Observed]] = []
    ended: list[asyncio.Task[Observed]] = []
    failed: list[asyncio.Task[Observed]] = []
    try:
        while True:
            # Slots take other trials before the judge gets the ended ones, so judging delays no trial. A judge that is
            # far behind holds up this generator: there are never more waiting observations than slots.
            for trial in islice(feed, 0 if failed else slots - len(running)):
                running.append(asyncio.ensure_future(run_and_keep(trial)))
            for task in (*ended, *failed):
                yield task.result()  # raises for a failure, which ends the execution
            if not running:
                return
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            done = [task for task in running if task.done()]
            running = [task for task in running if task not in done]
            failed = [task for task in done if task.exception() is not None]
            ended = [task for task in done if task not in failed]
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
