"""How long a turn may take: `agent.timeout`, or what is left of its trial's time if that is less."""

from __future__ import annotations

from holdfast.errors import HarnessError
from holdfast.model.observation import WHOLE
from holdfast.protocols import Agent, World


def left_s(world: World) -> float:
    """What is left of the trial's time, never below 0."""
    return max(0.0, world.time_left_s())


def patience_ms(timeout_ms: float, world: World) -> float:
    """For the turn that begins now."""
    return min(timeout_ms, left_s(world) * 1000)


async def reset_in_time(agent: Agent, world: World) -> None:
    """Resets the agent; HarnessError if that leaves no time to ask it, for that is not its doing."""
    await agent.reset(world.trial)
    if left_s(world) <= 0:
        raise HarnessError(f"no time was left to ask the agent: it was being reset when the trial's was over ({WHOLE})")
