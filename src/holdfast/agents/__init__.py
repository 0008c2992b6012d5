"""Agents: the thing under test, behind one method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.model.observation import Answer
    from holdfast.model.task import Task
    from holdfast.protocols.world import World


class Agent(Protocol):
    """The thing under test, behind one method. An exception that it raises is a result."""

    async def run(self, task: Task, world: World) -> Answer:
        """Ask the agent. Reset it first, if the spec names a reset; raise HarnessError if the reset fails."""
        ...

    async def close(self) -> None: ...
