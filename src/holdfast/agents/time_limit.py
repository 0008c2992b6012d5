"""How long a turn may take: `agent.timeout`, or what is left of its trial's time if that is less."""

from __future__ import annotations

from holdfast.protocols import World


def left_s(world: World) -> float:
    """What is left of the trial's time, never below 0."""
    return max(0.0, world.time_left_s())


def patience_ms(timeout_ms: float, world: World) -> float:
    """For the turn that begins now."""
    return min(timeout_ms, left_s(world) * 1000)
