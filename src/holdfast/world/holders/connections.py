"""Connections into a sandbox: begun in there, and waited for out here, so that nobody inside holds up its holder."""

from __future__ import annotations

import asyncio
import errno
import os
import socket


async def connected(fd: int) -> socket.socket:
    """The socket of a connection that has begun, once it is there; OSError if it is refused."""
    way = socket.socket(fileno=fd)
    way.setblocking(False)
    try:
        await _writable(way)
        failed = way.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not failed and way.getsockname() == way.getpeername():
            failed = errno.ECONNREFUSED  # nothing listens: a port of the system's own range can meet itself
        if failed:
            raise OSError(failed, os.strerror(failed))
    except BaseException:
        way.close()
        raise
    return way


async def _writable(way: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    loop.add_writer(way, _settle, done)
    try:
        await done
    finally:
        loop.remove_writer(way)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
