"""Our end of the line to a supervisor: whoever is told to stop while a reply arrives stops."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import SupervisorConnection


def test_a_cancellation_next_to_the_reply_is_not_lost_and_leaves_no_descriptor() -> None:
    async def scene() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line = SupervisorConnection(ours, notice=lambda _: None, lost=lambda: None)
        asking = asyncio.ensure_future(line.ask(wire.CONNECT, 80))
        await asyncio.sleep(0)
        read, write = os.pipe()
        open_before = len(os.listdir("/proc/self/fd"))
        wire.send(theirs, wire.DONE, 1, fds=[write])
        line.listen()  # the reply is there ...
        asking.cancel()  # ... and nobody has read it
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(os.listdir("/proc/self/fd")) == open_before
        for fd in (read, write):
            os.close(fd)
        theirs.close()
        await line.close()

    asyncio.run(scene())
