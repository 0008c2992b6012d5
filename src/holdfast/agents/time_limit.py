"""The time limit of a turn: `agent.timeout`, the rest of its trial's time, or the moment a limit is exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import World


T = TypeVar("T")


def time_left_s(world: World) -> float:
    """Return the rest of the trial's time in seconds, at least 0."""
    return max(0.0, world.time_left_s())


def compute_turn_limit_ms(timeout_ms: float, world: World) -> float:
    """Return the time limit of a turn that starts now."""
    return min(timeout_ms, time_left_s(world) * 1000)


async def run_until_limit(work: Coroutine[Any, Any, T], context: TrialContext, ended: T) -> T:
    """Return the result of the work, or `ended` as soon as the agent exceeds one of its limits."""
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
