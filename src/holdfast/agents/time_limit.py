"""How long a turn may take: `agent.timeout`, or what is left of its trial's time if that is less."""

from __future__ import annotations

from math import inf

from holdfast.errors import HarnessError
from holdfast.model.observation import WHOLE
from holdfast.protocols import Agent, TrialContext


def left_s(context: TrialContext) -> float:
    """What is left of the trial's time, never below 0."""
    return inf if context.house is None else max(0.0, context.house.time_left_s())


def patience_ms(timeout_ms: float, context: TrialContext) -> float:
    """For the turn that begins now."""
    return min(timeout_ms, left_s(context) * 1000)


async def reset_in_time(agent: Agent, context: TrialContext) -> None:
    """Resets the agent; HarnessError if that leaves no time to ask it, for that is not its doing."""
    await agent.reset(context.trial)
    if left_s(context) <= 0:
        raise HarnessError(f"no time was left to ask the agent: it was being reset when the trial's was over ({WHOLE})")
