"""What Holdfast and the supervisor of a sandbox say to each other, with descriptors. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

HEAD = struct.Struct("=Bqqq")
"""What it is, the ticket of the order that it is about, a value, nanoseconds."""
START, SIGNAL, CONNECT, SNAPSHOT, FREEZE, CHANGES, WATCH = 1, 2, 3, 4, 5, 6, 7
"""Orders: the value is 1 for a throwaway start, a signal's number, a port, the number of a watch."""
DONE, REFUSED, ENDED, COMMAND, OVER, BROKE, HIT = 16, 17, 18, 19, 20, 21, 22
"""Replies and notices: the value is an errno if REFUSED, a status as waitpid gives it if ENDED.

COMMAND tells of one command that began, and its ticket is that command's number; OVER tells of any that have ended.
HIT tells that the agent ran into a fault of its files, and its ticket is the number of the watch.
"""
UNASKED = (ENDED, COMMAND, OVER, HIT)
TEXT = 60_000
"""Bytes of text in a message: less than a socket takes at once."""
DESCRIPTORS = 250
"""In one message; the kernel allows 253."""
UNTOLD = -1
"""The value of ENDED where the program was never executed: the place for it could not be made.

The exit code of a command that has none; the nanoseconds of one that was never executed.
"""
_END = struct.Struct("=qqq")


class SupervisorMessage(NamedTuple):
    """One message."""

    what: int
    ticket: int
    value: int = 0
    took_ns: int = 0
    text: bytes = b""
    fds: tuple[int, ...] = ()


class CommandEndMessage(NamedTuple):
    """How a command ended."""

    number: int
    exit_code: int = UNTOLD
    took_ns: int = UNTOLD


@dataclass(frozen=True)
class SandboxLayout:
    """What a supervisor is told of the sandbox that it is to hold."""

    sources: tuple[str | None, ...] = ()
    """Paths that are needed inside; None: a mount that comes as a descriptor, in this order."""
    folders: tuple[bool, ...] = ()
    """Which of the sources are folders."""
    layers: tuple[int, ...] = ()
    """Which sources the workspace is made of, lowest first."""
    home: int = -1
    """Which source the home is filled with; -1: it is empty."""
    listen: tuple[tuple[str, int], ...] = ()
    visible: dict[str, int] = field(default_factory=dict)
    """Which sources are seen inside, by the path there."""
    files: dict[str, str] = field(default_factory=dict)
    """Small files of its own, by path."""
    links: dict[str, str] = field(default_factory=dict)
    """Links, by path, where nothing else is."""
    nested: bool = False
    bwrap: str = ""
    """Bubblewrap, where a supervisor can execute it."""
    disk: int = 0
    pids: int = 0
    memory: int | None = None
    """Address space of each process."""
    commands: bool = False
    groups: int = 0
    """How many control groups its programs are to be in: the last of the descriptors."""
    watched: tuple[str, ...] = ()
    """What faults of files there will be, so which calls are told: of `paths`, of the `disk`."""


@dataclass(frozen=True)
class StartOrder:
    """A program to start."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str


@dataclass(frozen=True)
class WatchOrder:
    """A fault of files that the agent may run into."""

    kind: str
    path: str
    spared: tuple[str, ...]


def send(
    to: socket.socket,
    what: int,
    ticket: int,
    value: int = 0,
    took_ns: int = 0,
    *,
    text: bytes = b"",
    fds: Sequence[int] = (),
) -> None:
    """Sends one message; OSError if nobody listens."""
    head = HEAD.pack(what, ticket, value, took_ns) + text[:TEXT]
    if fds:
        socket.send_fds(to, [head], fds)
    else:
        to.send(head)


def receive(source: socket.socket) -> SupervisorMessage | None:
    """The next message; None at the end. BlockingIOError if there is none yet on a socket that does not wait."""
    try:
        data, fds, _, _ = socket.recv_fds(source, HEAD.size + TEXT, DESCRIPTORS)
    except ConnectionError:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)  # no program may hold it; recv_fds forgets the flag that would do this
    if len(data) < HEAD.size:
        return None
    what, ticket, value, took_ns = HEAD.unpack_from(data)
    return SupervisorMessage(what, ticket, value, took_ns, data[HEAD.size :], tuple(fds))


def written(thing: SandboxLayout | StartOrder | WatchOrder) -> int:
    """A layout or an order as a file in memory, to be handed over; the caller closes it."""
    return file_in_memory(json.dumps(asdict(thing)).encode())


def file_in_memory(data: bytes) -> int:
    """A descriptor that others can be handed, at its beginning; the caller closes it."""
    fd = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def read(fd: int) -> Any:
    """What was written; closes the file."""
    with open(fd, "rb") as file:
        file.seek(0)
        return json.loads(file.read())


def layout_of(fd: int) -> SandboxLayout:
    """The layout in a file, which is closed."""
    data = read(fd)
    data["listen"] = tuple((str(host), int(port)) for host, port in data["listen"])
    for name in ("sources", "folders", "layers", "watched"):
        data[name] = tuple(data[name])
    return SandboxLayout(**data)


def order_of(fd: int) -> StartOrder:
    """The order in a file, which is closed."""
    data = read(fd)
    return StartOrder(tuple(data["argv"]), data["env"], data["cwd"])


def watch_of(fd: int) -> WatchOrder:
    """The same of a watch."""
    data = read(fd)
    return WatchOrder(data["kind"], data["path"], tuple(data["spared"]))


def ends_written(ends: Sequence[CommandEndMessage]) -> bytes:
    """The text of OVER."""
    return b"".join(_END.pack(*end) for end in ends)


def ends_of(text: bytes) -> list[CommandEndMessage]:
    """The ends in the text of OVER."""
    return [CommandEndMessage(*values) for values in _END.iter_unpack(text)]


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a line on which messages stay whole."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
