"""What faults of the clock share."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.errors import HarnessError
from holdfast.protocols import Clocked, World

UNREAD = "whether the agent read its clock cannot be seen: no reading is told to Holdfast"
"""Why a fault of the clock is not met: an agent that never asks for the time would be credited with it."""


def clocked(world: World) -> Clocked:
    """The world as one whose clock can be set; HarnessError where it cannot."""
    if not isinstance(world, Clocked):
        raise HarnessError("the agent's clock cannot be set here, so a fault of the clock cannot be met")
    return world


def written(moment: float) -> str:
    """A time as the ledger has it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
