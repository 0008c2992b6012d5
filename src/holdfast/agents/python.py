"""The Python agent: imported in processes of its own, on this machine or in the worlds of its trials."""

from __future__ import annotations

from typing import Protocol

from holdfast.agents.host_protocol import Ready
from holdfast.model.observation import Answer
from holdfast.model.task import Task
from holdfast.protocols.world import World


class PythonHosts(Protocol):
    """The processes that hold the agent."""

    @property
    def ready(self) -> Ready | None:
        """What was found when it was imported; None: that happens only in a trial."""
        ...

    @property
    def cost_note(self) -> str:
        """What new processes cost, where the reader should know; else empty."""
        ...

    async def perform(self, task: Task, world: World) -> Answer:
        """One trial, in one of them."""
        ...

    async def close(self) -> None: ...


class PythonAgent:
    """Asked in a process of its own, which may crash or hang; a reset function runs there, before it is asked."""

    def __init__(self, hosts: PythonHosts) -> None:
        self._hosts = hosts
        ready = hosts.ready
        self.tools: tuple[str, ...] = ready.tools if ready is not None else ()
        self.llm: tuple[str, ...] = ready.llm if ready is not None else ()
        self.notes: tuple[str, ...] = (hosts.cost_note,) if hosts.cost_note else ()

    async def run(self, task: Task, world: World) -> Answer:
        return await self._hosts.perform(task, world)

    async def close(self) -> None:
        await self._hosts.close()
