"""The common part of clock faults."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.errors import HarnessError
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.world import Clocked, WatchedClock, World

UNSEEN = "on this machine Holdfast cannot see whether the agent read its clock"
_CHANGE = "change"


def require_clock(world: World) -> Clocked:
    """Return the world, if its clock can be set; raise HarnessError otherwise."""
    if not isinstance(world, Clocked):
        raise HarnessError(
            "the agent's clock cannot be set here, so a fault of the clock cannot be met", code="clock-unavailable"
        )
    return world


async def set_clock(world: World, ctx: FaultContext, now: float, *, frozen: bool = False) -> None:
    """Set the clock and store the number of this change."""
    await require_clock(world).set_clock(now, frozen=frozen)
    if isinstance(world, WatchedClock):
        ctx.memory[_CHANGE] = world.clock_changes


def explain_unread_clock(world: World, ctx: FaultContext) -> str:
    """Return why a change of the clock was not met; empty if a program read the clock after it."""
    changes_read = world.read_clock_changes() if isinstance(world, WatchedClock) else None
    if changes_read is None:
        return UNSEEN
    change = ctx.memory[_CHANGE]
    if change in changes_read:
        return ""
    later = any(number > change for number in changes_read)
    return "the clock was changed again before a program read it" if later else "no program read the clock afterwards"


def format_time(moment: float) -> str:
    """Return a time in the format of the ledger."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
