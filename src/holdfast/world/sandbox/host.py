"""The small program that makes sandboxes for Holdfast: single-threaded, standard library only.

`bubblewrap.py` starts it with a control socket. Started as root, it first becomes an unprivileged user. Each order
goes to a supervisor: a fork of this process that holds one sandbox until its own line to Holdfast closes. When the
control socket closes, Holdfast is gone, and this program ends everything.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time

from holdfast.processes.leftovers import keep_orphans, kill
from holdfast.processes.spares import SpareChild
from holdfast.world.sandbox import kernel, supervisor
from holdfast.world.sandbox.mounts import SandboxMounts
from holdfast.world.sandbox.system import System, find_shared
from holdfast.world.supervisors import messages as wire

SETTLES_AFTER_MS = 30
"""Milliseconds to wait before the next supervisor is made.

New namespaces and mounts take kernel locks that starting a program needs, too: on a busy machine a program took 44 ms
to start when both coincided, and 25 ms otherwise. After this time a new sandbox has started its program.
"""


class SandboxHost(SpareChild):
    """The host process; each of its children supervises one sandbox."""

    pause_ms = SETTLES_AFTER_MS

    def __init__(self, control: socket.socket, machine: System) -> None:
        super().__init__(control)
        self._machine = machine

    def prepare(self) -> None:
        try:
            self._mounts: SandboxMounts | OSError = supervisor.prepare_sandbox(self._machine)
        except OSError as refused:
            self._mounts = refused

    def serve(self) -> None:
        message = wire.receive(self.control)
        if message is not None:
            self.report_order(1)
            self.leave()
            line, layout, fds = socket.socket(fileno=message.fds[0]), message.fds[1], message.fds[2:]
            if isinstance(self._mounts, OSError):
                wire.send(line, wire.BROKE, 0, text=f"{self._mounts.errno} {self._mounts}".encode())
            else:
                supervisor.Supervisor(line, self._mounts).run(wire.read_order(layout), fds)

    def on_fork_refused(self) -> None:
        time.sleep(0.05)


def drop_root(uid: int, gid: int) -> None:
    """Change from root to an unprivileged user; do nothing without root."""
    if os.getuid() == 0:
        # Groups first: once the user is not root, the process may not change them any more.
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        kernel.make_dumpable()


def make_owner_namespace(uid: int, gid: int) -> int:
    """Return a user namespace in which root's files belong to that user; -1 if it cannot be made. Needs root."""
    # A user namespace lives only while a process or a descriptor holds it, and only root outside may write arbitrary
    # maps into it. So a child makes one and waits, this process writes the maps and opens it, and then the child is not
    # needed any more.
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        return -1
    if pid == 0:
        try:
            kernel.unshare(kernel.NEWUSER)
            os.write(write_end, b"x")
            signal.pause()
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        os.read(read_end, 1)
        for name, outside in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(f"0 {outside} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    finally:
        os.close(read_end)
        kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main() -> None:
    """Run until the control socket closes. Arguments: control, user, group."""
    fd, uid, gid = sys.argv[1:4]
    control = socket.socket(fileno=int(fd))
    control.set_inheritable(False)  # no child may hold it open
    keep_orphans()
    mapping = make_owner_namespace(int(uid), int(gid)) if os.getuid() == 0 else -1
    wire.send(control, wire.DONE, 0, fds=[mapping] if mapping >= 0 else [])
    drop_root(int(uid), int(gid))
    os.umask(0o022)
    os.chdir("/")
    gc.collect()
    gc.freeze()  # supervisors share these pages; a garbage collection would copy them
    SandboxHost(control, find_shared()).run()
