"""The local executor: runs a number of trials in parallel on one Site, in this process."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from time import perf_counter

from holdfast.errors import UsageError
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
RunTrial = Callable[[Trial], Awaitable[Observed]]

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
        async def run(trial: Trial) -> Observed:
            observation = await run_trial(self.site, trial, on_fault, on_call)
            # Stored before the slot takes another trial, so a kill loses only trials that are still running.
            return trial, observation if store is None else store(trial, observation)

        feed = iter(trials) if started is None else _announce_trials(trials, started)
        return _run_serially(run, feed) if self.concurrency == 1 else _run_in_parallel(run, feed, self.concurrency)

    async def close(self) -> None:
        await self.site.close()


def _announce_trials(trials: Iterable[Trial], started: OnStart) -> Iterator[Trial]:
    """Yield the trials; `started` is called when a slot takes one."""
    for trial in trials:
        started(trial)
        yield trial


async def _run_serially(run: RunTrial, feed: Iterator[Trial]) -> AsyncGenerator[Observed, None]:
    breath = perf_counter()
    for trial in feed:
        yield await run(trial)
        if perf_counter() - breath > BREATH_S:
            await asyncio.sleep(0)
            breath = perf_counter()


async def _run_in_parallel(run: RunTrial, feed: Iterator[Trial], slots: int) -> AsyncGenerator[Observed, None]:
    running: list[asyncio.Task[Observed]] = []
    ended: list[asyncio.Task[Observed]] = []
    try:
        while True:
            # Free slots take their next trials before the judge gets the ended ones, so judging delays no trial. A
            # judge that is far behind holds up this generator: there are never more waiting observations than slots.
            running += [asyncio.ensure_future(run(trial)) for trial in islice(feed, slots - len(running))]
            for task in sorted(ended, key=lambda task: task.exception() is not None):  # a failure ends the execution
                yield task.result()
            if not running:
                return
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in running if task.done()]
            running = [task for task in running if task not in ended]
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *ended, return_exceptions=True)


VARIABLE = "HOLDFAST_UVLOOP"
"""The variable that selects uvloop: an installed package alone selects nothing."""


def choose_loop_factory(environ: Mapping[str, str]) -> Callable[[], AbstractEventLoop] | None:
    """Return the factory for the loop of a run; None for asyncio's own."""
    choice = environ.get(VARIABLE, "")
    if choice in ("", "0"):
        return None
    if choice != "1":
        raise UsageError(
            f"{VARIABLE} is {choice!r}",
            code="variable-invalid",
            hint="set it to 1 for uvloop, or to 0 for asyncio's own loop",
        )
    try:
        import uvloop
    except ImportError:
        raise UsageError(
            f"{VARIABLE} is set, but uvloop is not installed",
            code="extra-missing",
            hint="pip install 'holdfast[uvloop]'",
        ) from None
    return uvloop.new_event_loop
