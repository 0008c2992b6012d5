"""Closing several things: one that fails keeps no other open."""

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
