"""The log of a server, and how its end is noticed."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from holdfast.world.services.log import ServerLog


def test_an_end_that_came_while_this_process_was_stopped_is_not_a_timeout() -> None:
    """As after Ctrl-Z: when the process goes on, the limit is over and the end waits unread behind other output."""

    async def play() -> bool:
        ours, theirs = os.pipe()
        log = ServerLog(ours)
        waiting = asyncio.create_task(log.wait_for_end(0.05))
        await asyncio.sleep(0)
        os.write(theirs, b"shutting down\n")
        os.close(theirs)
        time.sleep(0.1)
        await waiting
        try:
            return log.ended
        finally:
            log.close()

    assert asyncio.run(play())


def test_a_server_that_does_not_end_is_a_timeout() -> None:
    async def play() -> None:
        ours, theirs = os.pipe()
        log = ServerLog(ours)
        try:
            await log.wait_for_end(0.01)
        finally:
            log.close()
            os.close(theirs)

    with pytest.raises(TimeoutError):
        asyncio.run(play())
