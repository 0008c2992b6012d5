"""Signals that end a run in order: what was seen by then is stored, and the rest can be taken up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Besides SIGINT, which the loop's own runner turns into an interrupt."""


async def to_its_end(work: Awaitable[None]) -> bool:
    """Whether the work came to its end; False if a signal ended it. One that is ignored (nohup) stays so."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, task.cancel)
    try:
        await work
    except asyncio.CancelledError:
        task.uncancel()
        return False
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
    return True
