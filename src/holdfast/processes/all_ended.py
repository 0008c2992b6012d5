"""Ending several things, and a task: one that fails keeps no other open, and nobody forgets that it was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def all_ended(ending: Iterable[Awaitable[T]]) -> list[T]:
    """Awaits every one at the same time, to its end; then raises the first failure, if there was one."""
    ended = await asyncio.gather(*ending, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if not isinstance(one, BaseException)]


async def stopped(task: asyncio.Task[T]) -> None:
    """Cancels a task and waits for its end; what it raised before is raised, and our own cancellation is not lost."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
