"""Which instance serves which trial: one that was started ahead, one kept per slot, or one in the trial's own world."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from typing import Protocol, TypeAlias

from holdfast.agents.instance import Instance
from holdfast.agents.time_limit import left_s
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.processes.pipes import Tail
from holdfast.processes.program import all_ended
from holdfast.protocols.world import World

StartInstance: TypeAlias = Callable[[], Awaitable[Instance]]
"""Starts one more instance and waits until it is ready."""
BeginIn: TypeAlias = Callable[[World, Tail], Awaitable[Instance]]
"""The same in the world of a trial; what it prints is kept."""


class NotReadyInTime(Exception):
    """The trial was over before its instance was ready; `printed` is what that had said."""

    def __init__(self, printed: Tail) -> None:
        super().__init__("it was not ready in time")
        self.printed = printed


class Instances(Protocol):
    """Lends an instance for each trial."""

    async def open(self) -> None:
        """Starts the first one; AgentUnavailable if that fails."""
        ...

    async def take(self, world: World) -> Instance:
        """One that no other trial uses; NotReadyInTime if the trial's time is over first.

        AgentUnavailable if none can be started.
        """
        ...

    async def give_back(self, instance: Instance) -> tuple[str, ...]:
        """Its trial is over; what the reader should know of its end."""
        ...

    async def close(self) -> None:
        """Ends all that are not lent."""
        ...


class SpareInstances:
    """A new instance for every trial. So many are started ahead, so that no trial waits for a start."""

    def __init__(self, begin: StartInstance, ahead: int) -> None:
        self._begin = begin
        self._ahead = ahead
        self._waiting: deque[asyncio.Task[Instance]] = deque()
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)  # more would only slow each other down

    async def open(self) -> None:
        first = asyncio.create_task(self._start())
        self._waiting.append(first)
        await first

    async def take(self, world: World) -> Instance:
        spare = self._waiting.popleft() if self._waiting else None
        self._top_up()
        ready = await self._ready(spare) if spare is not None else None
        return ready or await self._start()

    async def give_back(self, instance: Instance) -> tuple[str, ...]:
        return await instance.end()

    async def close(self) -> None:
        spares, self._ahead = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        await all_ended(one.end() for one in ended if isinstance(one, Instance))

    async def _ready(self, spare: asyncio.Task[Instance]) -> Instance | None:
        """The spare when it is ready; None if it could not be started or has ended since."""
        try:
            instance = await asyncio.shield(spare)
        except asyncio.CancelledError:
            self._waiting.appendleft(spare)
            raise
        except (AgentUnavailable, HarnessError):
            return None  # the next start says why, if it fails too
        if instance.alive:
            return instance
        await instance.end()
        return None

    def _top_up(self) -> None:
        while len(self._waiting) < self._ahead:
            self._waiting.append(asyncio.create_task(self._start()))

    async def _start(self) -> Instance:
        async with self._starts:
            return await self._begin()


class KeptInstances:
    """One instance per slot, kept between trials, replaced when it has died or a trial has worn it out."""

    def __init__(self, begin: StartInstance) -> None:
        self._begin = begin
        self._idle: list[Instance] = []

    async def open(self) -> None:
        self._idle.append(await self._begin())

    async def take(self, world: World) -> Instance:
        while self._idle:
            instance = self._idle.pop()
            if instance.alive:
                return instance
            await instance.end()
        return await self._begin()

    async def give_back(self, instance: Instance) -> tuple[str, ...]:
        if not instance.alive or instance.worn:
            return await instance.end()
        self._idle.append(instance)
        return ()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await all_ended(instance.end() for instance in idle)


class WorldInstances:
    """A new instance in the world of each trial."""

    def __init__(self, begin: BeginIn) -> None:
        self._begin = begin

    async def open(self) -> None:
        """Nothing is started before there is a world."""

    async def take(self, world: World) -> Instance:
        limit_s, printed = left_s(world), Tail()
        try:
            async with asyncio.timeout(None if limit_s == inf else limit_s) as limit:
                instance = await self._begin(world, printed)
        except TimeoutError:
            if not limit.expired():
                raise
            raise NotReadyInTime(printed) from None
        instance.of_trial = True
        return instance

    async def give_back(self, instance: Instance) -> tuple[str, ...]:
        return await instance.end()

    async def close(self) -> None:
        """Every instance ended with its trial."""
