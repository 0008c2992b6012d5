"""The keeper of one plain program: the process backend's stand-in for a sandbox. Standard library only."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time

from holdfast.processes.leftovers import end_orphans, kill_group
from holdfast.world.holders import wire
from holdfast.world.holders.wire import StartOrder


class Keeper:
    """Starts one program in a session of its own, adopts what daemonises below it, and ends all of that with it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def run(self, order: StartOrder, stdio: tuple[int, ...]) -> None:
        """Until the program has ended or the line closes; nothing is left afterwards."""
        died, dying = os.pipe()
        os.set_blocking(dying, False)
        signal.set_wakeup_fd(dying, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        began = time.monotonic_ns()
        try:
            pid = _spawn(order, stdio)
        except OSError as refused:
            wire.send(self._line, wire.REFUSED, 1, refused.errno or errno.EIO)
            return
        for fd in stdio:
            os.close(fd)
        status = None
        try:
            wire.send(self._line, wire.DONE, 1, pid)
            status = self._attend(pid, died)
        finally:
            took = time.monotonic_ns() - began
            kill_group(pid, signal.SIGKILL)
            end_orphans(set())
        if status is not None:
            wire.send(self._line, wire.ENDED, 1, status, took)

    def _attend(self, pid: int, died: int) -> int | None:
        while True:
            ready = select.select([self._line.fileno(), died], [], [])[0]
            if died in ready:
                os.read(died, 4096)
                try:
                    ended, status = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    return None
                if ended:
                    return status
            if self._line.fileno() in ready:
                message = wire.receive(self._line)
                if message is None:
                    return None
                kill_group(pid, message.value)


def _spawn(order: StartOrder, stdio: tuple[int, ...]) -> int:
    os.chdir(order.cwd)
    os.environ["PATH"] = order.env.get("PATH", os.defpath)  # where posix_spawnp looks
    return os.posix_spawnp(
        order.argv[0],
        list(order.argv),
        dict(order.env),
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(stdio)],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],  # Python's own settings of these
    )
