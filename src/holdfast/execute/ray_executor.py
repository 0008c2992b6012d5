"""An Executor on a Ray cluster: a worker is an actor with its own Site; the driver hands out batches and stores
results.

A worker that dies loses no record: another one repeats what it had not returned.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.execute.context import OnFault
from holdfast.execute.local import Observed, OnStart, Store
from holdfast.execute.ray_pool import Batch, ClusterWorker, WorkerNeeds, WorkerPool, await_result, format_error
from holdfast.execute.ray_worker import WorkerReport, WorkOrder, read_observation
from holdfast.execute.trace_sink import OnCall
from holdfast.model.codec import encode
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.reading.words import format_plural

AHEAD = 2
"""Batches per worker: it starts the next while the driver stores the last."""
BATCH_S = 0.5
"""Target duration of a batch: a call to a worker costs a millisecond, which is then negligible, and the end stays even.
"""
BATCH_LIMIT = 256
"""Trials per batch: what is lost when a worker dies."""
TRIES = 3
"""Lost workers or replies per trial before it becomes a harness error."""
BATCH_BYTES = 16 << 20
"""Target size of a batch's result: twice as much may be in the driver, and in the cluster's store, for each worker."""
_FULL = "give Ray's object store more memory (ray start --object-store-memory), or ask for fewer workers: -j"

OnWorkers = Callable[["Workers"], None]


class Workers(NamedTuple):
    """The state of a cluster's workers."""

    at_work: int
    in_flight: int
    """The number of running trials."""
    lost: int
    """The number of lost workers."""
    repeated: int
    """Trials of lost workers that were repeated."""


class RayExecutor:
    """Runs trials on the workers of a cluster, which `open` starts. The caller closes the connection."""

    def __init__(
        self,
        ray: Any,
        order: WorkOrder,
        needs: WorkerNeeds,
        *,
        listen: OnWorkers | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        """`mask` removes secrets from workers' messages."""
        self._ray = ray
        self._pool = WorkerPool(ray, order, needs, mask)
        self._on_workers = listen
        self._mask = mask
        self._under_way: dict[asyncio.Future[Any], Batch] = {}
        self._to_repeat: deque[Trial] = deque()
        """Trials to repeat because their worker was lost."""
        self._single = False
        self._lost = self._repeated = 0
        self._deaths: Counter[str] = Counter()
        """By trial: workers lost while they ran it, or others of its batch."""
        self._trial_s = 0.0
        """The duration of a trial, from the last batches; 0: not known yet."""
        self._trial_bytes = 0.0
        """The size of an observation, from the last batches."""

    async def open(self, workers: int) -> None:
        """Open this many workers, or as many as the cluster has room for; raise if none can work."""
        await self._pool.open(workers)

    # -- the run's interface -------------------------------------------------------------------------
    @property
    def concurrency(self) -> int:
        return 1 if self._single else sum(worker.slots for worker in self._pool.workers)

    @property
    def notes(self) -> tuple[RunNote, ...]:
        return self._pool.notes

    @property
    def ending(self) -> tuple[str, ...]:
        """Notes on workers that were rejected late, and on lost workers and replies."""
        if not self._lost and not self._repeated:
            return self._pool.late_refusals
        losses = (
            f"the cluster lost {format_plural(self._lost, 'worker')}" if self._lost else "replies of workers were lost"
        )
        return (*self._pool.late_refusals, f"{losses}; {format_plural(self._repeated, 'trial')} run again")

    def use_one_slot(self) -> None:
        self._single = True

    async def execute(
        self,
        trials: Iterable[Trial],
        *,
        started: OnStart | None = None,
        on_fault: OnFault | None = None,
        on_call: OnCall | None = None,
        store: Store | None = None,
    ) -> AsyncGenerator[Observed, None]:
        """Run the trials. Faults and calls are reported with the observation, after the trial has ended."""
        feed = iter(trials)
        keep = store or (lambda trial, observation: observation)
        try:
            while True:
                self._assign_batches(feed, started)
                if not self._under_way and not self._to_repeat:
                    return
                await self._wait_for_news()
                # Everything that arrived is stored before any of it is judged, so an interrupt here loses nothing.
                stored = [(trial, keep(trial, observation)) for trial, observation in self._collect_results()]
                for trial, observation in stored:
                    if on_fault is not None:
                        for fault in observation.ledger:
                            on_fault(trial, fault)
                    yield trial, observation
        finally:
            await self._stop(keep)

    async def close(self) -> None:
        await self._pool.close()

    # -- batches --------------------------------------------------------------------------------------
    def _assign_batches(self, feed: Iterator[Trial], started: OnStart | None) -> None:
        """Give a batch to every worker with room; none gets a second one while another has none."""
        deep, workers = (1, self._pool.workers[:1]) if self._single else (AHEAD, self._pool.workers)
        # Breadth first: every worker gets a batch before any of them gets its next one.
        for ahead in range(1, deep + 1):
            for worker in workers:
                if len(worker.batches) < ahead:
                    self._send_batch(worker, tuple(self._take_trials(feed, worker, started)))
        self._report_workers()

    def _send_batch(self, worker: ClusterWorker, trials: tuple[Trial, ...]) -> None:
        if not trials:
            return
        try:
            ref = worker.actor.run.remote(list(map(encode, trials)))
        except self._ray.exceptions.RayError as full:  # no room for what is sent: returning batches free some
            if not self._under_way:
                raise HarnessError(
                    f"the cluster accepts no work: {self._mask(format_error(full))}; {_FULL}", code="cluster-full"
                ) from full
            self._to_repeat.extend(trials)
            return
        batch = Batch(worker, trials, perf_counter())
        worker.batches.append(batch)
        self._under_way[asyncio.ensure_future(await_result(ref))] = batch

    def _take_trials(self, feed: Iterator[Trial], worker: ClusterWorker, started: OnStart | None) -> Iterator[Trial]:
        """Yield the trials of a worker's next batch; one whose worker was lost goes alone: it may have caused that."""
        if self._to_repeat:
            yield self._to_repeat.popleft()
            return
        for trial in islice(feed, self._choose_batch_size(worker)):
            if started is not None:
                started(trial)
            yield trial

    def _choose_batch_size(self, worker: ClusterWorker) -> int:
        """Return the number of trials in the next batch: a few at first, then as many as take half a second."""
        if self._single:
            return 1
        if not self._trial_s:
            return worker.slots
        by_size = int(BATCH_BYTES / self._trial_bytes) if self._trial_bytes else BATCH_LIMIT
        return max(worker.slots, min(BATCH_LIMIT, by_size, int(BATCH_S / self._trial_s)))

    async def _wait_for_news(self) -> None:
        """Wait for a batch or a new worker. Without any worker the run cannot continue."""
        pool = self._pool
        waited = {*self._under_way, *pool.opening}
        if not waited:
            raise pool.make_no_worker_error()
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not pool.workers and not pool.opening:
            raise pool.make_no_worker_error()

    def _collect_results(self) -> list[Observed]:
        """Return the results of returned batches, in the order in which they were handed out."""
        observed: list[Observed] = []
        for future in [future for future in self._under_way if future.done()]:
            batch = self._under_way.pop(future, None)
            if batch is not None:  # otherwise it was lost with another batch of its worker
                observed += self._collect_batch(future, batch)
        return observed

    def _collect_batch(self, future: asyncio.Future[Any], batch: Batch) -> list[Observed]:
        errors = self._ray.exceptions
        try:
            lines: list[bytes] | WorkerReport = future.result()
        except (errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError) as gone:
            return self._handle_lost_worker(batch.worker, gone)
        except errors.RayError as broken:
            batch.worker.batches.remove(batch)
            return self._retry_trials(batch.trials, f"the reply of a worker was lost {TRIES} times", broken)
        batch.worker.batches.remove(batch)
        if isinstance(lines, WorkerReport):
            raise AgentUnavailable(
                lines.refused, code=lines.code, hint=lines.hint, body=lines.body, config=lines.config
            )
        self._update_costs(batch, sum(map(len, lines)))
        by_id = {trial.id: trial for trial in batch.trials}
        return [(by_id[observation.trial], observation) for observation in map(read_observation, lines)]

    def _update_costs(self, batch: Batch, size: int) -> None:
        """Update the expected cost of a trial, to size the next batches."""
        # The time is a moving average. The size follows a larger result immediately and a smaller one slowly, because
        # results that are too large fill the memory of the cluster.
        count = len(batch.trials)
        trial_s = (perf_counter() - batch.begun) / AHEAD / count
        self._trial_s = trial_s if not self._trial_s else 0.7 * self._trial_s + 0.3 * trial_s
        self._trial_bytes = max(size / count, 0.7 * self._trial_bytes + 0.3 * size / count)

    def _retry_trials(self, trials: Sequence[Trial], how: str, why: Exception) -> list[Observed]:
        """Repeat the trials one by one, so that neither a bad one nor the total size affects the others.

        Returns those that were repeated often enough.
        """
        failed: list[Observed] = []
        for trial in trials:
            self._deaths[trial.id] += 1
            if self._deaths[trial.id] >= TRIES:
                error = f"{how}: {self._mask(format_error(why))}"
                failed.append((trial, Observation(trial.id, error=error, error_code="worker-unusable")))
            else:
                self._to_repeat.append(trial)
                self._repeated += 1
        return failed

    def _handle_lost_worker(self, worker: ClusterWorker, error: Exception) -> list[Observed]:
        """Handle a lost worker: its running trials are repeated one by one, and so is what it had not begun."""
        for future in [future for future, batch in self._under_way.items() if batch.worker is worker]:
            del self._under_way[future]
            future.add_done_callback(lambda lost: lost.cancelled() or lost.exception())  # marks its result as handled
        # A worker runs its first batch, and any trial of that batch may have killed it. They are repeated one by one,
        # which shows which one it was. The other batches had not begun: they are innocent, and are simply handed out
        # again.
        at_work, *waiting = worker.batches
        worker.batches.clear()
        self._lost += 1
        self._pool.end(worker)
        self._pool.open_another()
        failed = self._retry_trials(at_work.trials, f"{TRIES} workers died with this trial", error)
        self._to_repeat.extend(trial for batch in waiting for trial in batch.trials)
        self._report_workers()
        return failed

    async def _stop(self, keep: Store) -> None:
        """Store what has arrived, and end the working workers: no trial continues after the run."""
        try:
            for trial, observation in self._collect_results():
                keep(trial, observation)
        finally:
            for future in self._under_way:
                future.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            at_work = {batch.worker for batch in self._under_way.values()}
            self._under_way.clear()
            self._to_repeat.clear()
            await asyncio.gather(*map(self._pool.stop, at_work))

    def _report_workers(self) -> None:
        if self._on_workers is not None:
            in_flight = sum(len(batch.trials) for batch in self._under_way.values())
            self._on_workers(Workers(len(self._pool.workers), in_flight, self._lost, self._repeated))
