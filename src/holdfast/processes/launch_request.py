"""One program to start, as it is handed to the launch host: eight bytes with descriptors. Standard library only."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping, Sequence

TICKET = 8
"""Bytes of an order on the control socket; the rest of it comes as descriptors."""


class LaunchRequest:
    """One program to start: what to run, and the descriptors it gets as stdin, stdout and stderr."""

    def __init__(self, fds: list[int]) -> None:
        self._fds = fds
        for fd in fds:
            os.set_inheritable(fd, False)

    def spawn(self) -> int:
        """Starts the program in a session of its own; OSError if it cannot be executed."""
        written, stdin, stdout, stderr = self._fds
        argv, env, cwd = unpacked(os.pread(written, os.fstat(written).st_size, 0))
        os.chdir(cwd)
        return os.posix_spawn(
            argv[0],
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((stdin, stdout, stderr))],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these; a program expects them
        )

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


def packed(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> bytes:
    """What to run, as bytes; ValueError if a part holds a NUL, which no program can be given."""
    parts = [cwd, str(len(argv)), *argv, *[f"{name}={value}" for name, value in env.items()]]
    data = "\0".join(parts)
    if data.count("\0") != len(parts) - 1:
        raise ValueError("a NUL character in an argument or variable")
    return os.fsencode(data)


def unpacked(data: bytes) -> tuple[list[bytes], dict[bytes, bytes], bytes]:
    cwd, count, *rest = data.split(b"\0")
    argv, variables = rest[: int(count)], rest[int(count) :]
    pairs = [variable.partition(b"=") for variable in variables]
    return argv, {name: value for name, _, value in pairs}, cwd


def next_order(control: socket.socket) -> tuple[int, LaunchRequest] | None:
    """Waits for the next order; None when it is over."""
    try:
        ticket, fds, _, _ = socket.recv_fds(control, TICKET, 4)
    except OSError:
        return None
    return (int.from_bytes(ticket, "big"), LaunchRequest(list(fds))) if ticket else None
