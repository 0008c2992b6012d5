"""A connection to a host by its name: all its addresses, one beside the other if need be. uvloop has no such thing."""

from __future__ import annotations

import asyncio
import socket
from asyncio.staggered import staggered_race
from collections.abc import Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any, TypeAlias

NEXT_ADDRESS_S = 0.25
"""How long one address of a name is tried before the next one is tried beside it."""

_Found: TypeAlias = "tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]"


async def connect_by_name(name: str, port: int) -> socket.socket:
    """The socket of the first address that is there; raises OSError (gaierror if there is no such name)."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    opened: list[socket.socket] = []
    try:
        sock: socket.socket | None
        tries = [partial(_connect, one, opened) for one in _by_turns(found)]
        sock, _, failures = await staggered_race(tries, NEXT_ADDRESS_S)
    except BaseException:  # one may have won just now
        for sock in opened:
            sock.close()
        raise
    if sock is not None:
        return sock
    told = {str(failure): failure for failure in failures if failure is not None}
    if len(told) == 1:
        raise next(iter(told.values()))
    raise OSError("; ".join(told) or f"{name} has no address")


def _by_turns(found: Sequence[_Found]) -> list[_Found]:
    """The first address, then one of the other family, and so on."""
    own = [one for one in found if one[0] == found[0][0]]
    other = [one for one in found if one[0] != found[0][0]]
    return [one for one in chain.from_iterable(zip_longest(own, other)) if one is not None]


async def _connect(found: _Found, opened: list[socket.socket]) -> socket.socket:
    family, kind, proto, _, address = found
    sock = socket.socket(family, kind, proto)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    opened.append(sock)
    return sock
