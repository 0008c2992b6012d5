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
from holdfast.model.observation import Answer, EndingKind, Turn
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.pipes import Tail
from holdfast.processes.program import await_all
from holdfast.protocols.world import Place, World

StartInstance: TypeAlias = Callable[[], Awaitable[Instance]]
"""Starts one more instance and waits until it is ready."""
StartInWorld: TypeAlias = Callable[[World, Tail], Awaitable[Instance]]
"""Starts an instance in the world of a trial, with its output stored."""
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
        self._instances: Instances = WorldInstances(self._start_in_world)
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
            return await Instance.start(agent, self._find_port(), await open_place(), root)

        spares = self.limit if agent.spares is None else agent.spares
        ahead = spares if self._port is None else 0
        self._instances = (
            ReusedInstances(start_instance) if agent.isolation == "worker" else SpareInstances(start_instance, ahead)
        )
        try:
            await self._instances.open()
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
        try:
            instance = await self._instances.acquire(world)
        except (NotReadyInTime, OutOfMemoryAtStart) as unready:
            ending: EndingKind = "timeout" if isinstance(unready, NotReadyInTime) else "out_of_memory"
            turn = Turn(task.turns[0], None, 0.0, ending, str(unready))
            return Answer((turn,), output=unready.printed.text, notes=unready.printed.notes)
        try:
            answer = await instance.perform(task, world)
        except BaseException as broken:
            await instance.end(0.0 if isinstance(broken, asyncio.CancelledError) else None)
            raise
        notes = await self._instances.release(instance)
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer

    async def close(self) -> None:
        await self._instances.close()

    def _find_port(self) -> int:
        return self._ports.pick_port() if self._port is None else self._port

    async def _start_in_world(self, world: World, printed: Tail) -> Instance:
        return await Instance.start(self._agent, self._find_port(), await world.place(), self._root, printed)


class NotReadyInTime(Exception):
    """The trial's time ended before its instance was ready; `printed` is its output."""

    def __init__(self, printed: Tail) -> None:
        super().__init__("it was not ready in time")
        self.printed = printed


class Instances:
    """Lends an instance for each trial."""

    async def open(self) -> None:
        """Start the first one; raise AgentUnavailable if that fails."""

    async def acquire(self, world: World) -> Instance:
        """Return an instance that no other trial uses; raise NotReadyInTime if the trial's time ends first.

        Raises AgentUnavailable if none can be started.
        """
        raise NotImplementedError

    async def release(self, instance: Instance) -> tuple[str, ...]:
        """Take an instance back after its trial; return notes about its end."""
        return await instance.end()

    async def close(self) -> None:
        """End all instances that are not in use."""


class SpareInstances(Instances):
    """A new instance for every trial, started ahead so that trials do not wait."""

    def __init__(self, begin: StartInstance, ahead: int) -> None:
        self._begin = begin
        self._ahead = ahead
        self._waiting: deque[asyncio.Task[Instance]] = deque()
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)  # more would only slow each other down

    async def open(self) -> None:
        first = asyncio.create_task(self._start())
        self._waiting.append(first)
        await first

    async def acquire(self, world: World) -> Instance:
        # The replacement starts before this trial waits for its own instance, so both starts overlap.
        spare = self._waiting.popleft() if self._waiting else None
        self._refill()
        ready = await self._await_spare(spare) if spare is not None else None
        return ready or await self._start()

    async def close(self) -> None:
        spares, self._ahead = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        await await_all(one.end() for one in ended if isinstance(one, Instance))

    async def _await_spare(self, spare: asyncio.Task[Instance]) -> Instance | None:
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

    def _refill(self) -> None:
        while len(self._waiting) < self._ahead:
            self._waiting.append(asyncio.create_task(self._start()))

    async def _start(self) -> Instance:
        async with self._starts:
            return await self._begin()


class ReusedInstances(Instances):
    """One instance per slot, kept between trials and replaced when it has died or is unusable."""

    def __init__(self, begin: StartInstance) -> None:
        self._begin = begin
        self._idle: list[Instance] = []

    async def open(self) -> None:
        self._idle.append(await self._begin())

    async def acquire(self, world: World) -> Instance:
        while self._idle:
            instance = self._idle.pop()
            if instance.alive:
                return instance
            await instance.end()
        return await self._begin()

    async def release(self, instance: Instance) -> tuple[str, ...]:
        if not instance.alive or instance.is_unusable:
            return await instance.end()
        self._idle.append(instance)
        return ()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await await_all(instance.end() for instance in idle)


class WorldInstances(Instances):
    """A new instance in the world of each trial, which ends it."""

    def __init__(self, begin: StartInWorld) -> None:
        self._begin = begin

    async def acquire(self, world: World) -> Instance:
        limit_s, printed = time_left_s(world), Tail()
        try:
            async with asyncio.timeout(None if limit_s == inf else limit_s) as limit:
                instance = await self._begin(world, printed)
        except TimeoutError:
            if not limit.expired():
                raise
            raise NotReadyInTime(printed) from None
        instance.is_for_trial = True
        return instance
