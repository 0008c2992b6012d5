"""Finds the process at the other end of a loopback connection. Linux only; elsewhere no process is found."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from holdfast.processes.leftovers import list_family

PeerAddress = tuple[str, int]
"""Host and port of a client."""

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_QUESTION = struct.Struct("=IHHIIBBBBI")
"""The head of a netlink message, then: family, protocol, two unused fields, and the requested states."""
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""Any interface, any cookie."""
_INODE_AT = 16 + 4 + 48 + 16
"""The inode ends the fixed part of an answer; attributes follow, each with its size and kind."""
_ATTRIBUTE, _SHUTDOWN = struct.Struct("=HH"), 8
_NO_READING = 1


def find_owner(peer: PeerAddress, server_port: int, pids: Iterable[int]) -> int | None:
    """Return the one of these processes that holds the connection, itself or through a descendant."""
    inode = find_client_inode(peer, server_port)
    if inode is None:
        return None
    return next((pid for pid in pids if any(inode in list_sockets(member) for member in list_family([pid]))), None)


def find_client_inode(peer: PeerAddress, server_port: int, server_host: str = "127.0.0.1") -> int | None:
    """Return the client's end of its connection to Holdfast; None if it is already closed or unknown."""
    answer = _query_client_end(peer, (server_host, server_port))
    return int.from_bytes(answer[_INODE_AT : _INODE_AT + 4], sys.byteorder) or None


def can_still_read(peer: PeerAddress, server: PeerAddress) -> bool:
    """Return whether a client still holds its end and may read from it; False if unknown."""
    answer = _query_client_end(peer, server)
    has_inode = any(answer[_INODE_AT : _INODE_AT + 4])
    return has_inode and not _read_shut_directions(answer) & _NO_READING


def _query_client_end(peer: PeerAddress, server: PeerAddress) -> bytes:
    """Return the kernel's record of the client's end of a connection; empty if there is none."""
    if sys.platform != "linux":
        return b""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as line:
            # A netlink query for one socket takes microseconds; reading /proc/net/tcp takes longer the more connections
            # there are.
            head = _QUESTION.pack(72, _BY_FAMILY, _REQUEST, 1, 0, socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
            ends = socket.inet_aton(peer[0]) + bytes(12) + socket.inet_aton(server[0]) + bytes(12)
            line.send(head + struct.pack("!HH", peer[1], server[1]) + ends + _ANY)
            answer = line.recv(4096)
    except OSError:
        return b""
    return answer if int.from_bytes(answer[4:6], sys.byteorder) == _BY_FAMILY else b""


def _read_shut_directions(answer: bytes) -> int:
    """Return the directions that its own process has shut; if the kernel does not say, it reads no more."""
    # A netlink attribute begins with its size and kind, and is padded to a multiple of four bytes.
    at = _INODE_AT + 4
    while at + _ATTRIBUTE.size < len(answer):
        size, kind = _ATTRIBUTE.unpack_from(answer, at)
        if kind == _SHUTDOWN:
            return answer[at + _ATTRIBUTE.size]
        at += max(_ATTRIBUTE.size, size + 3 & ~3)
    return _NO_READING


def is_descendant(pid: int, from_pid: int) -> bool:
    """Return whether a process is the other one or its descendant."""
    while pid > 1 and pid != from_pid:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                pid = int(stat.read().rpartition(b")")[2].split()[1])
        except OSError:
            return False
    return pid == from_pid


def list_sockets(pid: int) -> Iterator[int]:
    """Yield the inodes of the sockets that a process holds, usually newest first; none if access is denied."""
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for fd in reversed(os.listdir(folder)):
            with suppress(OSError):  # it was closed in the meantime
                kind, _, inode = os.readlink(fd, dir_fd=folder).partition("[")
                if kind == "socket:":
                    yield int(inode[:-1])
    except OSError:
        return
    finally:
        os.close(folder)


def find_holder(inode: int) -> int | None:
    """Return any accessible process on this machine that holds the socket."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return next((pid for pid in pids if inode in list_sockets(pid)), None)


NEAR = 200
"""Number of processes checked first. With more, the search starts from the socket, which takes longer."""
TRIES = 10
WAIT_S = 0.5
"""Seconds to wait for the report of a new process, which may connect earlier."""


class ProcessTree:
    """The processes that may use an address: one and its descendants. If none is set, nobody is rejected.

    Another program of the same user can read an agent's token, but it cannot make the kernel report it as the agent.
    """

    def __init__(self) -> None:
        self.first = 0
        """The root process; 0 if it is unknown."""
        self._sockets: set[int] = set()
        """The sockets of the processes at the last check: many connections opened together need one check."""

    async def is_foreign(self, peer: PeerAddress, server_port: int) -> bool:
        """Return whether the client is a foreign process; False if the process cannot be found."""
        for _ in range(TRIES):
            inode = find_client_inode(peer, server_port) if self.first else None
            if inode is None or self._has_socket(inode):
                return False
            # The socket may belong to a process that started after the last look, or be handed to one: search all
            # processes for it, and repeat, because the report of a new process may still be under way.
            other = await asyncio.to_thread(find_holder, inode)
            if other is None or is_descendant(other, self.first):
                return False
            await asyncio.sleep(WAIT_S / TRIES)
        return True

    def _has_socket(self, inode: int) -> bool:
        if inode in self._sockets:
            return True
        # Newest descriptors come first, so a connection that was just opened is usually the first one looked at.
        self._sockets = set()
        for pid in islice(list_family([self.first]), NEAR):
            for socket_inode in list_sockets(pid):
                self._sockets.add(socket_inode)
                if socket_inode == inode:
                    return True
        return False
