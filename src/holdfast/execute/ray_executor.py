"""An Executor on a Ray cluster: a worker is an actor with a Site of its own; the driver hands out batches and stores.

A worker that dies takes no record with it: what it had not handed back is run again by another.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

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
    """An actor that works, and the batches that it has: it is at the first."""

    def __init__(self, actor: Any, machine: str, slots: int) -> None:
        self.actor = actor
        self.machine = machine
        self.slots = slots
        self.batches: deque[_Batch] = deque()


class _Batch(NamedTuple):
    worker: _Worker
    trials: tuple[Trial, ...]
    begun: float


class RayExecutor:
    """Trials on the workers of a cluster, which `open` starts. The connection is the caller's to close."""

    def __init__(
        self, ray: Any, order: WorkOrder, needs: Needs, *, told: Told | None = None, mask: Callable[[str], str] = str
    ) -> None:
        """`mask` takes secrets out of what workers say of themselves."""
        self._ray = ray
        self._order = order
        self._needs = needs
        self._told = told
        self._mask = mask
        self._actor = _actor_class(ray)
        self._workers: list[_Worker] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._under_way: dict[asyncio.Future[Any], _Batch] = {}
        self._again: deque[Trial] = deque()
        """Trials to be run again: their worker was lost."""
        self._single = False
        self._lost = self._repeated = 0
        self._refused: dict[str, WorkerReport] = {}
        """By machine: why its workers cannot work."""
        self._deaths: Counter[str] = Counter()
        """By trial: workers that were lost while they ran it, or others of its batch."""
        self._trial_s = 0.0
        """What a trial takes, by the last batches; 0: nothing is known yet."""
        self._site_notes: tuple[str, ...] = ()

    # -- its workers --------------------------------------------------------------------------------
    async def open(self, workers: int) -> None:
        """Opens so many workers, or as many as the cluster has room for; raises if none can work."""
        for _ in range(workers):
            self._open_another()
        until = perf_counter() + OPEN_S
        while self._opening and not self._workers and perf_counter() < until:
            await asyncio.wait(self._opening, timeout=until - perf_counter(), return_when=asyncio.FIRST_COMPLETED)
        if self._opening and self._workers:  # those that wait for room on the cluster need not be waited for
            await asyncio.wait(self._opening, timeout=_ROOM_S)
        if not self._workers:
            raise self._nobody()

    def _open_another(self) -> None:
        task = asyncio.create_task(self._open_one())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open_one(self) -> None:
        actor = self._actor.options(max_restarts=0, scheduling_strategy="SPREAD", **self._needs.options()).remote()
        try:
            report: WorkerReport = await asyncio.wait_for(self._answer(actor.open.remote(self._order)), OPEN_S)
        except self._ray.exceptions.RayError as broken:
            self._refused.setdefault("a worker", WorkerReport("", refused=self._mask(_said(broken))))
            return
        except (asyncio.CancelledError, TimeoutError):
            self._ray.kill(actor)
            raise
        if report.refused:
            self._refused.setdefault(report.machine, _masked(report, self._mask))
            self._ray.kill(actor)
            return
        self._site_notes = self._site_notes or tuple(map(self._mask, report.notes))
        self._workers.append(_Worker(actor, report.machine, report.slots))

    def _nobody(self) -> Exception:
        for machine, report in self._refused.items():
            if report.config:
                return AgentUnavailable(report.refused, hint=report.hint, body=report.body, config=True)
            return UserError(f"no worker can run this: {machine}: {report.refused}", hint=report.hint)
        there = {name: amount for name, amount in self._ray.cluster_resources().items() if ":" not in name}
        has = ", ".join(f"{name} {amount:g}" for name, amount in sorted(there.items()))
        return UserError(
            f"the cluster has no room for a worker that needs {self._needs.words()}",
            hint=f"it has {has or 'nothing'}; add machines, or ask for less in resources",
        )

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
        feed = iter(trials)
        keep = store or (lambda trial, seen: seen)
        try:
            while True:
                self._hand_out(feed, started)
                if not self._under_way and not self._again:
                    return
                await self._news()
                # All that has come is stored before any of it is judged: who stops here loses nothing of it.
                for trial, seen in [(trial, keep(trial, seen)) for trial, seen in self._arrived()]:
                    if on_fault is not None:
                        for fault in seen.ledger:
                            on_fault(trial, fault)
                    yield trial, seen
        finally:
            if self._under_way:  # closed early
                await self._stop(keep)

    async def close(self) -> None:
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, *map(self._end, self._workers), return_exceptions=True)
        self._workers.clear()

    async def _end(self, worker: _Worker) -> None:
        with suppress(TimeoutError, self._ray.exceptions.RayError):  # it is killed anyway
            await asyncio.wait_for(self._answer(worker.actor.close.remote()), 10.0)
        self._ray.kill(worker.actor)

    # -- handing out and taking back ----------------------------------------------------------------
    def _hand_out(self, feed: Iterator[Trial], started: OnStart | None) -> None:
        """Gives every worker that could do more a batch; none has two while another has none."""
        deep, workers = (1, self._workers[:1]) if self._single else (AHEAD, self._workers)
        for ahead in range(1, deep + 1):
            for worker in workers:
                if len(worker.batches) < ahead:
                    self._give(worker, tuple(self._next(feed, worker, started)))
        self._say()

    def _give(self, worker: _Worker, trials: tuple[Trial, ...]) -> None:
        if not trials:
            return
        batch = _Batch(worker, trials, perf_counter())
        worker.batches.append(batch)
        ref = worker.actor.run.remote(packed_trials(trials))
        self._under_way[asyncio.ensure_future(self._answer(ref))] = batch

    def _next(self, feed: Iterator[Trial], worker: _Worker, started: OnStart | None) -> Iterator[Trial]:
        """The trials of a worker's next batch; one that a worker was lost with goes alone: it may be deadly."""
        if self._again:
            yield self._again.popleft()
            return
        for trial in islice(feed, self._size(worker)):
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

    async def _news(self) -> None:
        """Waits until a batch is back, or a worker is there. With none left, and none to come, the run cannot go on."""
        waited = {*self._under_way, *self._opening}
        if not waited:
            raise self._nobody()
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not self._workers and not self._opening:
            raise self._nobody()

    def _arrived(self) -> list[Observed]:
        """What batches came to that are back, in the order in which they were handed out."""
        found: list[Observed] = []
        for future in [future for future in self._under_way if future.done()]:
            batch = self._under_way.pop(future, None)
            if batch is not None:  # else it was lost with another of its worker's
                found += self._taken(future, batch)
        return found

    def _taken(self, future: asyncio.Future[Any], batch: _Batch) -> list[Observed]:
        errors = self._ray.exceptions
        try:
            lines: list[bytes] | WorkerReport = future.result()
        except (errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError) as gone:
            return self._bury(batch.worker, gone)
        except errors.RayError as broken:
            batch.worker.batches.remove(batch)
            return [(trial, _broke(trial, f"the worker's reply was lost: {_said(broken)}")) for trial in batch.trials]
        batch.worker.batches.remove(batch)
        if isinstance(lines, WorkerReport):
            raise AgentUnavailable(lines.refused, hint=lines.hint, body=lines.body, config=lines.config)
        took = (perf_counter() - batch.begun) / AHEAD / len(batch.trials)
        self._trial_s = took if not self._trial_s else 0.7 * self._trial_s + 0.3 * took
        by_id = {trial.id: trial for trial in batch.trials}
        return [(by_id[seen.trial], seen) for seen in map(read_observation, lines)]

    def _bury(self, worker: _Worker, gone: Exception) -> list[Observed]:
        """A worker is lost: what it was at is run again, one by one, and so is what it had not begun."""
        for future in [future for future, batch in self._under_way.items() if batch.worker is worker]:
            del self._under_way[future]
            future.add_done_callback(_unheard)
        at_work, *waiting = worker.batches
        worker.batches.clear()
        self._workers.remove(worker)
        self._lost += 1
        self._ray.kill(worker.actor)
        self._open_another()
        given_up: list[Observed] = []
        for trial in at_work.trials:
            self._deaths[trial.id] += 1
            if self._deaths[trial.id] >= TRIES:
                given_up.append((trial, _broke(trial, f"{TRIES} workers died with this trial: {_said(gone)}")))
            else:
                self._again.append(trial)
                self._repeated += 1
        self._again.extend(trial for batch in waiting for trial in batch.trials)
        self._say()
        return given_up

    async def _stop(self, keep: Store) -> None:
        """Keeps what has come, and ends the workers that are at work: no trial goes on after the run."""
        for trial, seen in self._arrived():
            keep(trial, seen)
        for future in self._under_way:
            future.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for worker in {batch.worker for batch in self._under_way.values()}:
            self._ray.kill(worker.actor)
            self._workers.remove(worker)
        self._under_way.clear()

    def _say(self) -> None:
        if self._told is not None:
            in_flight = sum(len(batch.trials) for batch in self._under_way.values())
            self._told(Workers(len(self._workers), in_flight, self._lost, self._repeated))


def _actor_class(ray: Any) -> Any:
    from holdfast.execute.ray_worker import TrialWorker

    return ray.remote(TrialWorker)


def _unheard(future: asyncio.Future[Any]) -> None:
    """What became of a batch that was lost with its worker is known."""
    if not future.cancelled():
        future.exception()


def _masked(report: WorkerReport, mask: Callable[[str], str]) -> WorkerReport:
    return replace(report, refused=mask(report.refused), hint=mask(report.hint), body=mask(report.body))


def _broke(trial: Trial, why: str) -> Observation:
    return Observation(trial.id, error=why)


def _said(broken: BaseException) -> str:
    """What went wrong, in a line: what Ray says of an exception is a traceback, and the exception is its last line."""
    cause = getattr(broken, "cause", None)
    lines = [line.strip() for line in str(cause or broken).splitlines() if line.strip()]
    return f"{type(cause or broken).__name__}: {lines[0 if cause else -1][:300]}" if lines else type(broken).__name__


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
