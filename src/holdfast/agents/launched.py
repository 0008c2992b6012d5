"""The launched HTTP agent: a server that Holdfast starts itself, as many times as there are trials or slots."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from holdfast.agents.instance import Instance, InstanceSettings, OpenAddress
from holdfast.agents.instances import Instances, KeptInstances, SpareInstances
from holdfast.agents.launcher import Launcher
from holdfast.agents.placeholders import PORT
from holdfast.agents.ports import Ports, check_free
from holdfast.agents.readiness import address_of
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.protocols import TrialContext


class LaunchedHttpAgent:
    """Fresh: a new instance per trial, spares started ahead. Worker: one per slot, kept between trials.

    `{port}` in the endpoint gives every instance a port of its own. Without it there is one port, and so one
    instance at a time.
    """

    def __init__(self, plan: InstanceSettings, limit: int) -> None:
        agent = plan.agent
        self._plan = plan
        self._port = None if PORT in agent.endpoint else address_of(agent.endpoint)[1]
        self._ports = Ports()
        self.limit = limit if self._port is None else 1
        """How many trials can run at once."""
        self._slot = asyncio.Semaphore(self.limit)
        spares = self.limit if agent.spares is None else agent.spares
        ahead = spares if self._port is None else 0
        self._instances: Instances = (
            KeptInstances(self._begin) if agent.isolation == "worker" else SpareInstances(self._begin, ahead)
        )

    @classmethod
    async def open(
        cls, agent: AgentSpec, root: Path, environ: Mapping[str, str], limit: int, open_address: OpenAddress
    ) -> LaunchedHttpAgent:
        """Starts the first instance and waits until it is ready; AgentUnavailable if it does not get there."""
        self = cls(InstanceSettings(agent, root, environ, Launcher(), open_address), limit)
        try:
            await self._instances.open()
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of how it is run."""
        if self._port is None:
            return ()
        return (
            f"the agent has one port ({self._port}), so trials run one at a time; {PORT} in its endpoint frees them",
        )

    async def run(self, task: Task, context: TrialContext) -> Answer:
        """Asks an instance of its own. If that dies it is a result; if none can be started, AgentUnavailable."""
        async with self._slot:
            instance = await self._instances.take()
            try:
                answer = await instance.perform(task, context)
            except BaseException as broken:
                await instance.end(0.0 if isinstance(broken, asyncio.CancelledError) else None)
                raise
            notes = await self._instances.give_back(instance)
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer

    async def reset(self, trial: Trial) -> None:
        """What the spec names for a reset is called by `run`, on the instance that is asked."""

    async def close(self) -> None:
        try:
            await self._instances.close()
        finally:
            await self._plan.launcher.close()

    async def _begin(self) -> Instance:
        if self._port is None:
            return await Instance.start(self._plan, self._ports.take())
        check_free(*address_of(self._plan.agent.endpoint))
        return await Instance.start(self._plan, self._port)
