"""Asks the kernel whether a client is still connected: earlier than a read would show, and without reading."""

from __future__ import annotations

import select
import socket
from asyncio.trsock import TransportSocket

from holdfast.processes.peers import can_still_read

_ENDED = getattr(select, "POLLRDHUP", 0)  # Linux only; elsewhere a client's end is known once it is read
_BROKEN = select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_left(sock: TransportSocket, *, half: bool) -> bool:
    """Return whether the other end is closed.

    An end of data may mean that the client has closed, or only that it sends no more but still reads. With `half` the
    second does not count as closed, if the kernel can tell: for clients on this machine's own network.
    """
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), _ENDED)
    events = sum(event for _, event in poll.poll(0))
    if events & _BROKEN:
        return True
    return bool(events & _ENDED) and not (half and _is_still_reading(sock))


def _is_still_reading(sock: TransportSocket) -> bool:
    """Return whether a client that has ended its own direction still holds its socket and has not shut down the other
    one.
    """
    if sock.family == socket.AF_UNIX:
        return True  # poll itself detects a closed one
    try:
        peer, own = sock.getpeername(), sock.getsockname()
    except OSError:
        return False
    return can_still_read((peer[0], peer[1]), (own[0], own[1]))
