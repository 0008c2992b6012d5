"""The workers of a run on a cluster: opened where there is room, and elsewhere if a machine cannot run them."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, UserError
from holdfast.execute.ray_worker import TrialWorker, WorkerReport, WorkOrder
from holdfast.model.codes import RunNote
from holdfast.reading.words import format_plural

if TYPE_CHECKING:
    from holdfast.model.trial import Trial

OPEN_S = 120.0
"""Seconds for a worker to open its site."""
_ROOM_S = 30.0
"""Seconds for the first worker to wait for room on the cluster."""
_NODE = "ray.io/node-id"
_UNNAMED = "a worker"


class WorkerNeeds(Struct, frozen=True):
    """One worker's requirements on its machine, in Ray's terms."""

    cpus: float = 1.0
    memory: int | None = None
    gpus: float = 0.0
    labels: tuple[str, ...] = ()

    def to_ray_options(self) -> dict[str, Any]:
        resources: dict[str, Any] = {"num_cpus": self.cpus, "resources": dict.fromkeys(self.labels, 0.001)}
        if self.memory is not None:
            resources["memory"] = self.memory
        if self.gpus:
            resources["num_gpus"] = self.gpus
        return resources

    def can_fit(self, available: Mapping[str, float]) -> bool:
        """Return whether a machine or a cluster has this much in total."""
        required = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0, **dict.fromkeys(self.labels, 0.001)}
        return all(available.get(name, 0.0) >= amount for name, amount in required.items())

    def describe(self) -> str:
        extras = [f"{self.memory >> 20} MB"] if self.memory is not None else []
        extras += [f"{self.gpus:g} gpu"] if self.gpus else []
        return ", ".join([f"{self.cpus:g} cpu", *extras, *self.labels])


class Batch(NamedTuple):
    """Trials given to a worker."""

    worker: ClusterWorker
    trials: tuple[Trial, ...]
    begun: float


@dataclass(eq=False)
class ClusterWorker:
    """A working actor, and its batches: it runs the first."""

    actor: Any
    machine: str
    slots: int
    batches: deque[Batch] = field(default_factory=deque)


class WorkerPool:
    """The working and opening workers, and why others cannot work."""

    def __init__(self, ray: Any, order: WorkOrder, needs: WorkerNeeds, mask: Callable[[str], str]) -> None:
        self._ray = ray
        self._order = pickle.dumps(order)
        self._first = (order.version, order.python)
        self._needs = needs
        self._mask = mask
        self._actor = ray.remote(TrialWorker)
        self._barred: set[str] = set()
        """Nodes that cannot run the worker."""
        self._elsewhere = 0
        """Workers that may still be opened instead of rejected ones."""
        self.workers: list[ClusterWorker] = []
        self.opening: set[asyncio.Task[None]] = set()
        self.refused: dict[tuple[str, str], WorkerReport] = {}
        """Why workers cannot work, each reason once per machine."""
        self._site_notes: tuple[RunNote, ...] = ()
        self._refused_at_first = 0
        """How many rejections were known when the pool was open."""

    async def open(self, workers: int) -> None:
        """Open this many workers, or as many as the cluster has room for; raise if none can work."""
        self._elsewhere = workers * max(0, len(self._list_other_nodes()) - 1)
        for _ in range(workers):
            self.open_another()
        await self._await_opening(OPEN_S, lambda: bool(self.workers))
        if self.workers:
            await self._await_opening(_ROOM_S, lambda: False)  # those that wait for room may come later
        self._refused_at_first = len(self.refused)
        if not self.workers:
            raise self.make_no_worker_error()

    async def _await_opening(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Wait until no worker is opening any more, until there are enough, or until the time is over."""
        until = perf_counter() + seconds
        while self.opening and not enough() and perf_counter() < until:
            await asyncio.wait(self.opening, timeout=until - perf_counter(), return_when=asyncio.FIRST_COMPLETED)

    def open_another(self) -> None:
        task = asyncio.create_task(self._open_worker())
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    async def _open_worker(self) -> None:
        actor = None
        try:
            actor = self._actor.options(**self._build_options()).remote()
            async with asyncio.timeout(OPEN_S):
                report: WorkerReport = await await_result(actor.open.remote(*self._first, self._order))
        except self._ray.exceptions.RayError as broken:  # also if there is no room for the order itself
            self._refuse(WorkerReport(_UNNAMED, refused=format_error(broken)))
            return
        except TimeoutError:  # no room, or a site that does not open: the run continues without it
            self._ray.kill(actor)
            return
        except asyncio.CancelledError:
            self._ray.kill(actor)
            raise
        if report.refused:
            self._ray.kill(actor)
            self._refuse(report)
            return
        self._site_notes = self._site_notes or tuple([replace(n, text=self._mask(n.text)) for n in report.notes])
        self.workers.append(ClusterWorker(actor, report.machine, report.slots))

    def _build_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"max_restarts": 0, "scheduling_strategy": "SPREAD", **self._needs.to_ray_options()}
        if self._barred:
            options["label_selector"] = {_NODE: f"!in({','.join(sorted(self._barred))})"}
        return options

    def _refuse(self, report: WorkerReport) -> None:
        """Report a machine that cannot run a worker, and open that worker on another one if possible."""
        masked = replace(
            report, refused=self._mask(report.refused), hint=self._mask(report.hint), body=self._mask(report.body)
        )
        self.refused.setdefault((masked.machine, masked.refused), masked)
        if report.node:
            self._barred.add(report.node)
        # Another machine may do better, unless the spec itself is the cause. The budget keeps a cluster of unfit
        # machines from opening workers forever.
        if not report.config and self._elsewhere > 0 and self._list_other_nodes():
            self._elsewhere -= 1
            self.open_another()

    def _list_other_nodes(self) -> list[str]:
        """Return the other machines that are known to have the required resources."""
        alive = (node for node in self._ray.nodes() if node["Alive"] and node["NodeID"] not in self._barred)
        return [node["NodeID"] for node in alive if self._needs.can_fit(node["Resources"])]

    def make_no_worker_error(self) -> Exception:
        """Build the error that says why there is no worker."""
        for report in self.refused.values():
            if report.config:
                return AgentUnavailable(
                    report.refused, code=report.code, hint=report.hint, body=report.body, config=True
                )
            return UserError(
                f"no worker can run this: {report.machine}: {report.refused}", code=report.code, hint=report.hint
            )
        available = {name: amount for name, amount in self._ray.cluster_resources().items() if ":" not in name}
        has = ", ".join(f"{name} {amount:g}" for name, amount in sorted(available.items()))
        needs, hint = self._needs.describe(), f"it has {has or 'nothing'}; add machines, or ask for less in resources"
        if self._needs.can_fit(available):
            why = f"no worker with {needs} was available after {OPEN_S:g} s: the cluster is busy, or cannot start it"
            return UserError(why, code="cluster-full", hint=f"{hint}; `ray status` shows its state")
        return UserError(f"the cluster has no room for a worker that needs {needs}", code="cluster-full", hint=hint)

    @property
    def notes(self) -> tuple[RunNote, ...]:
        machines = len({worker.machine for worker in self.workers})
        where = f"ran on Ray: {format_plural(len(self.workers), 'worker')} on {format_plural(machines, 'machine')}"
        refused = self._format_refusals()[: self._refused_at_first]
        return (*self._site_notes, *(RunNote("cluster", text) for text in (where, *refused)))

    def _format_refusals(self) -> tuple[str, ...]:
        return tuple(f"no worker on {report.machine}: {report.refused}" for report in self.refused.values())

    @property
    def late_refusals(self) -> tuple[str, ...]:
        """Rejections that came after the pool was open."""
        return self._format_refusals()[self._refused_at_first :]

    def end(self, worker: ClusterWorker) -> None:
        """Kill the worker, whatever it is doing."""
        self.workers.remove(worker)
        self._ray.kill(worker.actor)

    async def stop(self, worker: ClusterWorker) -> None:
        """Stop a worker in the middle of its work, and wait until it has ended."""
        self.end(worker)
        await self._close_actor(worker)

    async def close(self) -> None:
        for task in list(self.opening):
            task.cancel()
        await asyncio.gather(*self.opening, *map(self._close_actor, self.workers), return_exceptions=True)
        for worker in [*self.workers]:
            self.end(worker)

    async def _close_actor(self, worker: ClusterWorker) -> None:
        with suppress(TimeoutError, self._ray.exceptions.RayError):  # a dead actor answers this way
            async with asyncio.timeout(10.0):
                await await_result(worker.actor.close.remote())


async def await_result(ref: Any) -> Any:
    """Wait for the result of a worker's method."""
    return await asyncio.wrap_future(ref.future())


def format_error(broken: BaseException) -> str:
    """Return the error on one line: Ray's exception text is a traceback, and its last line is the exception."""
    cause = getattr(broken, "cause", None)
    lines = [line.strip() for line in str(cause or broken).splitlines() if line.strip()]
    return f"{type(cause or broken).__name__}: {lines[0 if cause else -1][:300]}" if lines else type(broken).__name__
