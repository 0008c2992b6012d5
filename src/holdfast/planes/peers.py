"""Which process is at the other end of a loopback connection. Linux."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


def owner(port: int, server_port: int, pids: Iterable[int]) -> int | None:
    """The one of these processes that holds the connection, itself or by a process below it."""
    inode = _inode(port, server_port)
    if inode is None:
        return None
    name = f"socket:[{inode}]"
    return next((pid for pid in pids if any(_holds(one, name) for one in _family(pid))), None)


def _inode(port: int, server_port: int) -> str | None:
    """Of the client's end of the connection from `port` to `server_port`."""
    client, server = f"0100007F:{port:04X}", f"0100007F:{server_port:04X}"
    try:
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in table:
                fields = line.split()
                if fields[1] == client and fields[2] == server:
                    return fields[9]
    except OSError:
        return None
    return None


def _family(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                below = children.read().split()
        except OSError:
            continue
        for child in below:
            yield from _family(int(child))


def _holds(pid: int, name: str) -> bool:
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for fd in fds:
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") == name:
                return True
        except OSError:
            continue
    return False
