"""What faults of processes share."""

from __future__ import annotations

from holdfast.errors import HarnessError
from holdfast.protocols import Disturbable, World


def disturbable(world: World) -> Disturbable:
    """The sandbox as one whose processes can be disturbed; HarnessError where it cannot."""
    if not isinstance(world.sandbox, Disturbable):
        raise HarnessError("this sandbox cannot disturb the agent's processes: use the bubblewrap backend")
    return world.sandbox
