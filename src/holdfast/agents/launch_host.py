"""The small program that starts agents for Holdfast: single-threaded, standard library only.

Started by `agents/launcher.py` with a control socket. Each order is taken by a keeper: a fork of this process
that starts one program in a session of its own, adopts whatever daemonises below it, and ends all of that when
the program has ended. When the control socket closes, Holdfast is gone, and everything is ended.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import NoReturn

from holdfast.agents.launch_order import Order, next_order, packed
from holdfast.processes.leftovers import die_with_parent, end_orphans, ended_children, keep_orphans, kill, kill_group

NOTICE = struct.Struct("=Bqqqq")
"""What is told back: what happened, the ticket, a value, nanoseconds that the program ran, processes that survived.

Of a program that has started, the last is its keeper: all that the program starts is below it."""
TAKEN = struct.Struct("=qq")
"""What a keeper tells when it takes an order: its process id and the ticket."""
OVER = 84
"""Exit code of a keeper that found the control socket closed."""
PAUSE_MS = 4
"""Before the next keeper is made, unless an order waits: making it would slow down the start under way."""
LINGER_S = 4.0
"""For a group whose first process obeyed SIGTERM: longer than Holdfast's own grace, which ends it."""
STOPPED = (signal.SIGTERM, 128 + signal.SIGTERM << 8)
"""How a process ends that obeys SIGTERM, as waitpid gives it: a shell may turn it into an exit code."""
STARTED, REFUSED, EXITED, LOST = 1, 2, 3, 4
"""The value is a process id, an errno, a status as waitpid gives it, and nothing: its keeper was killed."""


class LaunchHost:
    """This process: its control socket and its keepers, of which one always waits for an order.

    Making a keeper takes as long as starting a small program, so it is made ahead.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pid = os.getpid()
        self._keepers: dict[int, int] = {}
        """Tickets by process id: 0 until the keeper has an order."""
        self._ready = 0
        """The keeper that waits for an order."""
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
            if not self._ready and (not told or self._control.fileno() in told) and not self._breed():
                self._refuse()
        for pid in self._keepers:
            kill(pid, signal.SIGKILL)  # what they kept comes to us
        end_orphans(set())

    def _attend(self, told: dict[int, int]) -> None:
        if told.get(self._control.fileno(), 0) & select.POLLHUP:
            self._over = True
        if self._taken[0] in told:
            pid, ticket = TAKEN.unpack(os.read(self._taken[0], TAKEN.size))
            self._keepers[pid] = ticket
            self._ready = 0
        if self._died[0] in told:
            os.read(self._died[0], 4096)
            self._reap()

    def _breed(self) -> bool:
        """Makes the next keeper; False if the machine does not let us."""
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid == 0:
            self._live()
        self._keepers[pid] = 0
        self._ready = pid
        return True

    def _refuse(self) -> None:
        """Takes the next order, if one comes soon, and cannot do it."""
        if not select.select([self._control], [], [], 0.05)[0]:
            return
        taken = next_order(self._control)
        if taken is None:
            self._over = True
            return
        ticket, order = taken
        order.close()
        self._tell(REFUSED, ticket, errno.EAGAIN)

    def _reap(self) -> None:
        """Forgets keepers that have ended; where one was killed, what it kept is ended here."""
        for pid, status in ended_children():
            ticket = self._keepers.pop(pid, 0)
            if pid == self._ready:
                self._ready = 0
                self._over = self._over or status == OVER << 8
            if ticket and status != 0:
                left = end_orphans(set(self._keepers))
                self._tell(LOST, ticket, left=len(left))

    def _live(self) -> NoReturn:
        """The keeper: waits for its order, starts the program, outlives it, ends what it left, and dies."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent()
            if os.getppid() != self._pid:
                os._exit(1)  # it ended before we could tie ourselves to it
            keep_orphans()
            rehearse()
            taken = next_order(self._control)
            if taken is not None:
                ticket, order = taken
                os.write(self._taken[1], TAKEN.pack(os.getpid(), ticket))
                self._keep(ticket, order)
            code = 0 if taken else OVER
        finally:
            os._exit(code)

    def _keep(self, ticket: int, order: Order) -> None:
        began = time.monotonic_ns()
        try:
            pid = order.spawn()
        except OSError as refused:
            self._tell(REFUSED, ticket, refused.errno or 0)
            return
        order.close()
        self._tell(STARTED, ticket, pid, left=os.getpid())
        ended, status = os.wait()
        while ended != pid:
            ended, status = os.wait()
        took = time.monotonic_ns() - began
        if status in STOPPED:
            linger(pid)
        kill_group(pid, signal.SIGKILL)
        left = end_orphans(set())
        self._tell(EXITED, ticket, status, took, len(left))

    def _tell(self, what: int, ticket: int, value: int = 0, took_ns: int = 0, left: int = 0) -> None:
        try:
            os.write(self._control.fileno(), NOTICE.pack(what, ticket, value, took_ns, left))
        except OSError:
            return  # nobody listens any more: the closed socket ends us all


def rehearse() -> None:
    """Goes through a start that fails: the memory that a start writes to is this process's own by then."""
    if sys.platform != "linux":
        return
    written = os.memfd_create("rehearsal")
    os.write(written, packed([b"/dev/null/none"], os.environb.copy(), b"."))
    order = Order([written, *(os.dup(written) for _ in range(3))])
    try:
        order.spawn()
    except OSError:
        NOTICE.pack(REFUSED, 0, 0, time.monotonic_ns(), 0)
    order.close()


def linger(group: int) -> None:
    """Lets the others of a group end by themselves: where a shell started the agent, the shell is gone first."""
    until = time.monotonic() + LINGER_S
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except (ProcessLookupError, PermissionError, ChildProcessError):
            return
        time.sleep(0.005)


def main() -> None:
    """Runs until the control socket closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)  # no agent may hold it
    keep_orphans()
    gc.collect()
    gc.freeze()  # keepers share these pages; a collection there would copy them
    LaunchHost(control).run()
