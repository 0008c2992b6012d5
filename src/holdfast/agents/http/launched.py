"""The launched HTTP agent: a server that Holdfast starts for each trial or slot."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.agents.conversation import time_left_s
from holdfast.agents.http.instance import Instance, Ports, check_port_free
from holdfast.agents.http.readiness import OutOfMemoryAtStart, parse_address
from holdfast.agents.placeholders import PORT
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.observation import Answer, Turn
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.pipes import Tail
from holdfast.processes.program import await_all
from holdfast.protocols.world import Place, World

OpenPlace: TypeAlias = Callable[[], Awaitable[Place]]
"""Opens a place for one more instance."""


class LaunchedHttpAgent:
    """A server that is started for its trials.

    On this machine with `fresh`: a new instance per trial, with spares started ahead. With `worker`: one per slot, kept
    between trials. `{port}` in the endpoint gives every instance its own port. Without it there is one port, so one
    instance at a time. In a sandbox: a new instance in the world of each trial, which has its own ports.
    """

    def __init__(self, agent: AgentSpec, root: Path) -> None:
        self._agent = agent
        self._root = root
        self._port = None if PORT in agent.endpoint else parse_address(agent.endpoint)[1]
        self._ports = Ports()
        self._pool: InstancePool | None = None
        """The instances on this machine; None in sandboxes, where each trial has its own."""
        self._slot: asyncio.Semaphore | None = None
        self.limit: int | None = None
        """Maximum number of concurrent trials; None for any number."""
        self.notes: tuple[str, ...] = ()
        """Notes for the reader about how it is run."""

    @classmethod
    async def open_on_machine(
        cls, agent: AgentSpec, root: Path, limit: int, open_place: OpenPlace
    ) -> LaunchedHttpAgent:
        """Start the first instance and wait until it is ready.

        Raises AgentUnavailable if it does not become ready.
        """
        self = cls(agent, root)
        self.limit = limit if self._port is None else 1
        self._slot = asyncio.Semaphore(self.limit)
        if self._port is not None:
            why = f"the agent has one port ({self._port}), so trials run one at a time"
            self.notes = (f"{why}; write {PORT} in its endpoint to run them in parallel",)

        async def start_instance() -> Instance:
            if self._port is not None:
                check_port_free(*parse_address(agent.endpoint))
            return await self._start(await open_place())

        spares = self.limit if agent.spares is None else agent.spares
        reuse = agent.isolation == "worker"
        self._pool = InstancePool(start_instance, 0 if reuse or self._port is not None else spares, reuse=reuse)
        try:
            await self._pool.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def run(self, task: Task, world: World) -> Answer:
        """Ask a separate instance. If it dies, that is a result; raise AgentUnavailable if none can be started."""
        if self._slot is None:
            return await self._run(task, world)
        async with self._slot:
            return await self._run(task, world)

    async def _run(self, task: Task, world: World) -> Answer:
        limit_s, printed = time_left_s(world), Tail()
        try:
            async with asyncio.timeout(None if limit_s == inf else limit_s) as limit:
                instance = await self._acquire(world, printed)
        except (TimeoutError, OutOfMemoryAtStart) as unready:
            if isinstance(unready, OutOfMemoryAtStart):
                turn = Turn(task.turns[0], None, 0.0, "out_of_memory", str(unready))
            elif limit.expired():
                turn = Turn(task.turns[0], None, 0.0, "timeout", "it was not ready in time")
            else:
                raise
            return Answer((turn,), output=printed.text, notes=printed.notes)
        try:
            answer = await instance.perform(task, world)
        except BaseException as broken:
            await instance.end(0.0 if isinstance(broken, asyncio.CancelledError) else None)
            raise
        notes = await (instance.end() if self._pool is None else self._pool.release(instance))
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def _acquire(self, world: World, printed: Tail) -> Instance:
        if self._pool is not None:
            return await self._pool.acquire()
        return await self._start(await world.place(), printed)

    async def _start(self, place: Place, printed: Tail | None = None) -> Instance:
        port = self._ports.pick_port() if self._port is None else self._port
        return await Instance.start(self._agent, port, place, self._root, printed)


class InstancePool:
    """Instances on this machine that wait for a trial: started ahead, or kept from earlier trials."""

    def __init__(self, begin: Callable[[], Awaitable[Instance]], ahead: int, *, reuse: bool) -> None:
        """`begin` starts one more instance and waits until it is ready."""
        self._begin = begin
        self._ahead = ahead
        self._reuse = reuse
        self._waiting: deque[asyncio.Future[Instance]] = deque()
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)  # more would only slow each other down

    async def open(self) -> None:
        """Start the first one; raise AgentUnavailable if that fails."""
        first = asyncio.create_task(self._start())
        self._waiting.append(first)
        await first

    async def acquire(self) -> Instance:
        """Return an instance that no other trial uses; raise AgentUnavailable if none can be started."""
        # The replacement starts before this trial waits for its own instance, so both starts overlap.
        spare = self._waiting.popleft() if self._waiting else None
        while len(self._waiting) < self._ahead:
            self._waiting.append(asyncio.create_task(self._start()))
        ready = await self._await_spare(spare) if spare is not None else None
        return ready or await self._start()

    async def release(self, instance: Instance) -> tuple[str, ...]:
        """Take an instance back after its trial; return notes about its end."""
        if not self._reuse or not instance.alive or instance.is_unusable:
            return await instance.end()
        idle: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()
        idle.set_result(instance)
        self._waiting.append(idle)
        return ()

    async def close(self) -> None:
        """End all instances that are not in use."""
        spares, self._ahead = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        await await_all(one.end() for one in ended if isinstance(one, Instance))

    async def _await_spare(self, spare: asyncio.Future[Instance]) -> Instance | None:
        """Return the spare when it is ready; None if it could not be started or has ended since."""
        # Cancelling this trial must not cancel the start: the instance goes back to the front, for the next trial.
        try:
            instance = await asyncio.shield(spare)
        except asyncio.CancelledError:
            self._waiting.appendleft(spare)
            raise
        except (AgentUnavailable, HarnessError):
            return None  # the next start reports why, if it fails too
        if instance.alive:
            return instance
        await instance.end()
        return None

    async def _start(self) -> Instance:
        async with self._starts:
            return await self._begin()
