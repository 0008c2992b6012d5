"""What faults of the clock share."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.errors import HarnessError
from holdfast.protocols import Clocked, World


def clocked(world: World) -> Clocked:
    """The world as one whose clock can be set; HarnessError where it cannot."""
    if not isinstance(world, Clocked):
        raise HarnessError("the agent's clock cannot be set here, so a fault of the clock cannot be met")
    return world


def written(moment: float) -> str:
    """A time as the ledger has it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
