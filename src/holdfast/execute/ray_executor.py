"""An Executor on a Ray cluster: a worker is an actor with a Site of its own; the driver hands out batches and stores.

A worker that dies takes no record with it: what it had not handed back is run again by another.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.errors import AgentUnavailable, UserError
from holdfast.execute.context import Met, Saw
from holdfast.execute.local import Observed, OnStart, Store
from holdfast.execute.ray_order import WorkerReport, WorkOrder, packed_trials, read_observation
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

AHEAD = 2
"""Batches that a worker has at once: it takes up the next while the driver stores the last."""
BATCH_S = 0.5
"""What a batch should take: a call to a worker costs a millisecond, so that is nothing, and the end stays even."""
MOST = 256
"""Trials of one batch: what a worker takes along when it dies."""
TRIES = 3
"""Workers that a trial may outlive before it is our error."""
OPEN_S = 120.0
"""How long a worker may take to open its site."""
_ROOM_S = 30.0
"""How long the first worker may wait for room on the cluster."""

Told = Callable[["Workers"], None]


class Workers(NamedTuple):
    """What goes on at a cluster."""

    at_work: int
    in_flight: int
    """Trials."""
    lost: int
    """Workers."""
    repeated: int
    """Trials that a worker had when it was lost, run again."""


class Needs(Struct, frozen=True):
    """What one worker takes of its machine, in Ray's words."""

    cpus: float = 1.0
    memory: int | None = None
    gpus: float = 0.0
    labels: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"num_cpus": self.cpus, "resources": dict.fromkeys(self.labels, 0.001)}
        if self.memory is not None:
            asked["memory"] = self.memory
        if self.gpus:
            asked["num_gpus"] = self.gpus
        return asked

    def words(self) -> str:
        more = [f"{self.memory >> 20} MB"] if self.memory is not None else []
        more += [f"{self.gpus:g} gpu"] if self.gpus else []
        return ", ".join([f"{self.cpus:g} cpu", *more, *self.labels])


class _Worker:
    """An actor that works, and what it has to do."""

    def __init__(self, actor: Any, machine: str, slots: int) -> None:
        self.actor = actor
        self.machine = machine
        self.slots = slots
        self.batches = 0


class _Batch(NamedTuple):
    worker: _Worker
    trials: tuple[Trial, ...]
    begun: float


class RayExecutor:
    """Trials on the workers of a cluster. Made by `open`; the connection to the cluster is the caller's to close."""

    def __init__(self, ray: Any, order: WorkOrder, needs: Needs, *, told: Told | None = None) -> None:
        self._ray = ray
        self._order = order
        self._needs = needs
        self._told = told
        self._actor = _actor_class(ray)
        self._workers: list[_Worker] = []
        self._wanted = 0
        self._single = False
        self._lost = self._repeated = self._in_flight = 0
        self._refused: dict[str, WorkerReport] = {}
        """By machine: why its workers cannot work."""
        self._tries: Counter[str] = Counter()
        """By trial: workers that were lost with it."""
        self._trial_s = 0.0
        """What a trial takes, by the last batches; 0: nothing is known yet."""
        self._site_notes: tuple[str, ...] = ()

    async def open(self, workers: int) -> None:
        """Opens so many workers, or as many as the cluster has room for; raises if none can work."""
        self._wanted = workers
        opening = [asyncio.create_task(self._open_one()) for _ in range(workers)]
        try:
            for task in asyncio.as_completed(opening, timeout=OPEN_S):
                await task
                if self._workers:
                    break
            if self._workers:  # those that wait for room on the cluster need not be waited for
                await asyncio.wait(opening, timeout=_ROOM_S if len(self._workers) < workers else None)
        except TimeoutError:
            pass
        finally:
            for task in opening:
                if not task.done():
                    task.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
        if not self._workers:
            raise self._nobody()

    def _nobody(self) -> Exception:
        for machine, report in self._refused.items():
            if report.config:
                return AgentUnavailable(report.refused, hint=report.hint, config=True)
            return UserError(f"no worker can run this: {machine}: {report.refused}", hint=report.hint)
        there = {name: amount for name, amount in self._ray.cluster_resources().items() if ":" not in name}
        has = ", ".join(f"{name} {amount:g}" for name, amount in sorted(there.items()))
        return UserError(
            f"the cluster has no room for a worker that needs {self._needs.words()}",
            hint=f"it has {has or 'nothing'}; add machines, or ask for less in resources",
        )

    async def _open_one(self) -> None:
        actor = self._actor.options(max_restarts=0, scheduling_strategy="SPREAD", **self._needs.options()).remote()
        try:
            report: WorkerReport = await self._answer(actor.open.remote(self._order))
        except self._ray.exceptions.RayError as broken:
            self._refused.setdefault("a worker", WorkerReport("", refused=_said(broken)))
            return
        except asyncio.CancelledError:
            self._ray.kill(actor)
            raise
        if report.refused:
            self._refused.setdefault(report.machine, report)
            self._ray.kill(actor)
            return
        self._site_notes = self._site_notes or report.notes
        self._workers.append(_Worker(actor, report.machine, report.slots))

    async def _answer(self, ref: Any) -> Any:
        return await asyncio.wrap_future(ref.future())

    # -- what a run asks ----------------------------------------------------------------------------
    @property
    def concurrency(self) -> int:
        return 1 if self._single else sum(worker.slots for worker in self._workers)

    @property
    def notes(self) -> tuple[str, ...]:
        machines = len({worker.machine for worker in self._workers})
        where = f"ran on Ray: {_plural(len(self._workers), 'worker')} on {_plural(machines, 'machine')}"
        refused = [f"no worker on {name}: {report.refused}" for name, report in self._refused.items()]
        return (*self._site_notes, where, *refused)

    @property
    def ending(self) -> tuple[str, ...]:
        """What to say of workers that were lost; nothing if none was."""
        if not self._lost:
            return ()
        return (f"{_plural(self._lost, 'worker')} of the cluster lost, {_plural(self._repeated, 'trial')} run again",)

    def one_at_a_time(self) -> None:
        self._single = True

    async def execute(
        self,
        trials: Iterable[Trial],
        *,
        started: OnStart | None = None,
        on_fault: Met | None = None,
        on_call: Saw | None = None,
        store: Store | None = None,
    ) -> AsyncGenerator[Observed, None]:
        """As an Executor does. Faults are heard of when a trial has ended; its calls come with its observation."""
        feed, again = iter(trials), deque[Trial]()
        under_way: dict[asyncio.Future[Any], _Batch] = {}
        try:
            while True:
                self._hand_out(feed, again, under_way, started)
                if not under_way:
                    return
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for done in [future for future in under_way if future.done()]:
                    batch = under_way.pop(done)
                    for trial, seen in await self._taken(done, batch, again):
                        if on_fault is not None:
                            for fault in seen.ledger:
                                on_fault(trial, fault)
                        yield trial, store(trial, seen) if store is not None else seen
        finally:
            self._in_flight = 0
            if under_way:  # closed early: what is under way is nobody's
                await self._stop(under_way)

    async def close(self) -> None:
        for worker in self._workers:
            with suppress(TimeoutError, self._ray.exceptions.RayError):  # it is killed anyway
                await asyncio.wait_for(self._answer(worker.actor.close.remote()), 10.0)
            self._ray.kill(worker.actor)
        self._workers.clear()

    # -- handing out and taking back ----------------------------------------------------------------
    def _hand_out(
        self,
        feed: Iterator[Trial],
        again: deque[Trial],
        under_way: dict[asyncio.Future[Any], _Batch],
        started: OnStart | None,
    ) -> None:
        """Gives every worker that could do more a batch; none has two while another has none."""
        deep, workers = (1, self._workers[:1]) if self._single else (AHEAD, self._workers)
        for ahead in range(1, deep + 1):
            for worker in workers:
                if worker.batches >= ahead:
                    continue
                batch = tuple(self._next(feed, again, worker, started))
                if not batch:
                    return
                worker.batches += 1
                self._in_flight += len(batch)
                ref = worker.actor.run.remote(packed_trials(batch))
                future = asyncio.ensure_future(self._answer(ref))
                under_way[future] = _Batch(worker, batch, perf_counter())
        self._say()

    def _next(
        self, feed: Iterator[Trial], again: deque[Trial], worker: _Worker, started: OnStart | None
    ) -> Iterator[Trial]:
        size = self._size(worker)
        while again and size:
            size -= 1
            yield again.popleft()
        for trial in islice(feed, size):
            if started is not None:
                started(trial)
            yield trial

    def _size(self, worker: _Worker) -> int:
        """Trials of the next batch: a few at first, then what takes about half a second."""
        if self._single:
            return 1
        if not self._trial_s:
            return worker.slots
        return max(worker.slots, min(MOST, int(BATCH_S / self._trial_s)))

    async def _taken(self, done: asyncio.Future[Any], batch: _Batch, again: deque[Trial]) -> list[Observed]:
        """What a batch came to; of a worker that was lost nothing, and its trials are run again."""
        batch.worker.batches -= 1
        self._in_flight -= len(batch.trials)
        errors = self._ray.exceptions
        try:
            lines: list[bytes] | WorkerReport = done.result()
        except (errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError) as gone:
            return await self._bury(batch, again, gone)
        except errors.RayError as broken:
            return [(trial, _broke(trial, f"the worker's reply was lost: {_said(broken)}")) for trial in batch.trials]
        if isinstance(lines, WorkerReport):
            raise AgentUnavailable(lines.refused, hint=lines.hint, body=lines.body, config=lines.config)
        took = (perf_counter() - batch.begun) / AHEAD / len(batch.trials)
        self._trial_s = took if not self._trial_s else 0.7 * self._trial_s + 0.3 * took
        by_id = {trial.id: trial for trial in batch.trials}
        return [(by_id[seen.trial], seen) for seen in map(read_observation, lines)]

    async def _bury(self, batch: _Batch, again: deque[Trial], gone: Exception) -> list[Observed]:
        if batch.worker in self._workers:
            self._workers.remove(batch.worker)
            self._lost += 1
            self._ray.kill(batch.worker.actor)
            await self._replace()
        given_up = []
        for trial in batch.trials:
            self._tries[trial.id] += 1
            if self._tries[trial.id] < TRIES:
                again.append(trial)
                self._repeated += 1
            else:
                given_up.append((trial, _broke(trial, f"{TRIES} workers died with this trial: {_said(gone)}")))
        self._say()
        return given_up

    async def _replace(self) -> None:
        """Another worker for one that was lost; with none left the run cannot go on."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._open_one(), OPEN_S)
        if not self._workers:
            raise self._nobody()

    async def _stop(self, under_way: Mapping[asyncio.Future[Any], _Batch]) -> None:
        """Ends the workers that are at work: a trial in mid-air must not go on after the run."""
        for future in under_way:
            future.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for worker in {batch.worker for batch in under_way.values()}:
            self._ray.kill(worker.actor)
            if worker in self._workers:
                self._workers.remove(worker)

    def _say(self) -> None:
        if self._told is not None:
            self._told(Workers(len(self._workers), self._in_flight, self._lost, self._repeated))


def _actor_class(ray: Any) -> Any:
    from holdfast.execute.ray_worker import TrialWorker

    return ray.remote(TrialWorker)


def _broke(trial: Trial, why: str) -> Observation:
    return Observation(trial.id, error=why)


def _said(broken: BaseException) -> str:
    """What went wrong, in a line: what Ray says of an exception is a traceback, and the exception is its last line."""
    cause = getattr(broken, "cause", None)
    lines = [line.strip() for line in str(cause or broken).splitlines() if line.strip()]
    return f"{type(cause or broken).__name__}: {lines[0 if cause else -1][:300]}" if lines else type(broken).__name__


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
