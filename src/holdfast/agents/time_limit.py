"""How long a turn may take: `agent.timeout`, what is left of its trial's time, or until a limit is passed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import World


T = TypeVar("T")


def left_s(world: World) -> float:
    """What is left of the trial's time, never below 0."""
    return max(0.0, world.time_left_s())


def patience_ms(timeout_ms: float, world: World) -> float:
    """For the turn that begins now."""
    return min(timeout_ms, left_s(world) * 1000)


async def unless_limited(work: Coroutine[Any, Any, T], context: TrialContext, ended: T) -> T:
    """What the work gives; `ended`, at once, when the agent passes one of its limits."""
    if not context.sink.has_limits:
        return await work
    working = asyncio.ensure_future(work)
    passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    context.sink.on_limit = lambda: None if passed.done() else passed.set_result(None)
    try:
        if not context.sink.limit:
            await asyncio.wait((working, passed), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else ended
    finally:
        context.sink.on_limit = None
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
