"""The launched HTTP agent: a server that Holdfast starts itself, as many times as there are trials or slots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.agents.instance import Instance
from holdfast.agents.instances import Instances, KeptInstances, NotReadyInTime, SpareInstances, WorldInstances
from holdfast.agents.placeholders import PORT
from holdfast.agents.ports import Ports, check_free
from holdfast.agents.readiness import OutOfMemoryAtStart, address_of
from holdfast.model.observation import Answer, Turn
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.pipes import Tail
from holdfast.protocols.world import Place, World

OpenPlace: TypeAlias = Callable[[], Awaitable[Place]]
"""Opens a place for one more instance."""


class LaunchedHttpAgent:
    """A server that is started for its trials.

    On this machine, fresh: a new instance per trial, spares started ahead. Worker: one per slot, kept between trials.
    `{port}` in the endpoint gives every instance a port of its own. Without it there is one port, and so one instance
    at a time. In a sandbox: a new instance in the world of each trial, whose ports are its own.
    """

    def __init__(self, agent: AgentSpec, root: Path) -> None:
        self._agent = agent
        self._root = root
        self._port = None if PORT in agent.endpoint else address_of(agent.endpoint)[1]
        self._ports = Ports()
        self._instances: Instances = WorldInstances(self._begin_in)
        self._slot: asyncio.Semaphore | None = None
        self.limit: int | None = None
        """How many trials can run at once; None: any number."""
        self.notes: tuple[str, ...] = ()
        """What the reader should know of how it is run."""

    @classmethod
    async def on_machine(cls, agent: AgentSpec, root: Path, limit: int, open_place: OpenPlace) -> LaunchedHttpAgent:
        """Starts the first instance and waits until it is ready; AgentUnavailable if it does not get there."""
        self = cls(agent, root)
        self.limit = limit if self._port is None else 1
        self._slot = asyncio.Semaphore(self.limit)
        if self._port is not None:
            one = f"the agent has one port ({self._port}), so trials run one at a time"
            self.notes = (f"{one}; {PORT} in its endpoint frees them",)

        async def begin() -> Instance:
            if self._port is not None:
                check_free(*address_of(agent.endpoint))
            return await Instance.start(agent, self._own_port(), await open_place(), root)

        spares = self.limit if agent.spares is None else agent.spares
        ahead = spares if self._port is None else 0
        self._instances = KeptInstances(begin) if agent.isolation == "worker" else SpareInstances(begin, ahead)
        try:
            await self._instances.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def run(self, task: Task, world: World) -> Answer:
        """Asks an instance of its own. If that dies it is a result; if none can be started, AgentUnavailable."""
        if self._slot is None:
            return await self._run(task, world)
        async with self._slot:
            return await self._run(task, world)

    async def _run(self, task: Task, world: World) -> Answer:
        try:
            instance = await self._instances.take(world)
        except NotReadyInTime as late:
            turn = Turn(task.turns[0], None, 0.0, "timeout", str(late))
            return Answer((turn,), output=late.printed.text, notes=late.printed.notes)
        except OutOfMemoryAtStart as starved:
            turn = Turn(task.turns[0], None, 0.0, "out_of_memory", str(starved))
            return Answer((turn,), output=starved.printed.text, notes=starved.printed.notes)
        try:
            answer = await instance.perform(task, world)
        except BaseException as broken:
            await instance.end(0.0 if isinstance(broken, asyncio.CancelledError) else None)
            raise
        notes = await self._instances.give_back(instance)
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer

    async def close(self) -> None:
        await self._instances.close()

    def _own_port(self) -> int:
        return self._ports.take() if self._port is None else self._port

    async def _begin_in(self, world: World, printed: Tail) -> Instance:
        return await Instance.start(self._agent, self._own_port(), await world.place(), self._root, printed)
