"""The small program that makes sandboxes for Holdfast: single-threaded, standard library only.

Started by `sandbox/lines.py` with a control socket. Started as root it drops to an unprivileged user first. Each
order is taken by a holder: a fork of this process that keeps one sandbox, or one plain program, until its own
line to Holdfast closes. When the control socket closes, Holdfast is gone, and everything is ended.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from holdfast.processes.leftovers import die_with_parent, end_orphans, ended_children, keep_orphans, kill
from holdfast.world.sandbox import bare, holder, kernel, wire
from holdfast.world.sandbox.system import System, shared

PAUSE_MS = 3
"""Before the next holder is made, unless an order waits: making it would slow down the one at work."""


class Host:
    """This process: its control socket and its holders, of which one is always ready for an order."""

    def __init__(self, control: socket.socket, kind: wire.Kind, machine: System) -> None:
        self._control = control
        self._kind = kind
        self._machine = machine
        self._pid = os.getpid()
        self._ready = 0
        """The holder that waits for an order."""
        self._over = False
        self._taken = os.pipe()
        self._died = os.pipe()

    def run(self) -> None:
        """Until the control socket closes; then all that still runs is ended."""
        os.set_blocking(self._died[1], False)
        signal.set_wakeup_fd(self._died[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._taken[0], select.POLLIN)
        poll.register(self._died[0], select.POLLIN)
        while not self._over:
            poll.register(self._control.fileno(), 0 if self._ready else select.POLLIN)
            told = dict(poll.poll(None if self._ready else PAUSE_MS))
            self._attend(told)
            if not self._ready and not self._over and (not told or self._control.fileno() in told):
                self._breed()
        end_orphans(set())

    def _attend(self, told: dict[int, int]) -> None:
        if told.get(self._control.fileno(), 0) & (select.POLLHUP | select.POLLERR):
            self._over = True
        if self._taken[0] in told:
            os.read(self._taken[0], 1)
            self._ready = 0
        if self._died[0] in told:
            os.read(self._died[0], 4096)
            self._reap()

    def _breed(self) -> None:
        """Makes the next holder; where the machine does not let us, it is tried again."""
        try:
            pid = os.fork()
        except OSError:
            select.select([], [], [], 0.05)
            return
        if pid == 0:
            self._live()
        self._ready = pid

    def _reap(self) -> None:
        for pid, _ in ended_children():
            if pid == self._ready:
                self._ready = 0

    def _live(self) -> NoReturn:
        """A holder: makes its namespaces ahead, waits for its order, and keeps what it is told to."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve = self._settled()
            die_with_parent()
            if os.getppid() != self._pid:
                os._exit(1)  # it ended before we could tie ourselves to it
            keep_orphans()
            taken = wire.receive(self._control)
            if taken is not None:
                os.write(self._taken[1], b"x")
                self._control.close()
                serve(socket.socket(fileno=taken.fds[0]), taken.fds[1], taken.fds[2:])
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _settled(self) -> Callable[[socket.socket, int, tuple[int, ...]], None]:
        """Makes ahead what can be; how an order is then served: by its line, what it is, and its descriptors."""
        if self._kind == "bare":
            return lambda line, order, fds: bare.Keeper(line).run(wire.order_of(order), fds)
        try:
            ground = holder.settle(self._machine)
        except OSError as refused:
            broken = f"{refused.errno} {refused}".encode()
            return lambda line, *_: wire.send(line, wire.BROKE, 0, text=broken)
        return lambda line, layout, fds: holder.Holder(line, ground).run(wire.layout_of(layout), fds)


def drop(uid: int, gid: int) -> None:
    """From root to a user without rights; whoever is not root stays who they are."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        kernel.make_dumpable()


def owners(uid: int, gid: int) -> int:
    """A user namespace in which root's files belong to that user; -1 if it cannot be made. Needs root."""
    told, tell = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        return -1
    if pid == 0:
        try:
            kernel.unshare(kernel.NEWUSER)
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(0)
    os.close(tell)
    try:
        os.read(told, 1)
        for name, outside in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(f"0 {outside} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    finally:
        os.close(told)
        kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main() -> None:
    """Runs until the control socket closes: control, kind, user, group."""
    fd, kind, uid, gid = sys.argv[1:5]
    control = socket.socket(fileno=int(fd))
    control.set_inheritable(False)  # nothing below may hold it
    keep_orphans()
    if kind == "jail":
        mapping = owners(int(uid), int(gid)) if os.getuid() == 0 else -1
        wire.send(control, wire.DONE, 0, fds=[mapping] if mapping >= 0 else [])
        drop(int(uid), int(gid))
    os.umask(0o022)
    os.chdir("/")
    gc.collect()
    gc.freeze()  # holders share these pages; a collection there would copy them
    Host(control, "jail" if kind == "jail" else "bare", shared()).run()
