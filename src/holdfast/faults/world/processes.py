"""The common part of process faults."""

from __future__ import annotations

from typing import Literal

from holdfast.errors import HarnessError
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import Disturbable
from holdfast.protocols.world import World

_LIMIT_HITS = "limit_hits"


def begin_count(world: World, ctx: FaultContext, what: Literal["memory", "cpu"]) -> None:
    """Store how often the limit was hit before the fault."""
    ctx.memory[_LIMIT_HITS] = require_disturbable(world).count_limit_hits(what) or 0


def explain_no_limit_hit(world: World, ctx: FaultContext, what: Literal["memory", "cpu"]) -> str:
    """Return why a limit was not met; empty if the agent's processes hit it."""
    # The control group counts from its start, so only hits after the fault prove that the fault caused them.
    counted = require_disturbable(world).count_limit_hits(what)
    if counted is None:
        return f"without control groups Holdfast cannot see whether the agent hit its {what} limit"
    return "" if counted > ctx.memory.get(_LIMIT_HITS, 0) else f"the agent never ran into its {what} limit"


def require_disturbable(world: World) -> Disturbable:
    """Return the sandbox, if its processes can be disturbed; raise HarnessError otherwise."""
    if not isinstance(world.sandbox, Disturbable):
        raise HarnessError(
            "this sandbox cannot disturb the agent's processes: use the bubblewrap backend", code="fault-impossible"
        )
    return world.sandbox
