"""A process that keeps one child ready for the next order: forking takes as long as starting a small program.

The launch host, the sandbox host and the host of a Python agent are such processes. All are single-threaded, so a fork
is safe, and adopt whatever daemonises below them, so nothing that a child leaves behind escapes.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import NoReturn

from holdfast.processes.leftovers import die_with_parent, end_orphans, keep_orphans, reap_children

_REPORT = struct.Struct("=qq")
"""A child's pid and the ticket of its order."""


class SpareChild:
    """This process: its control socket and its children, one of which always waits for an order.

    A subclass defines what a child prepares, how it serves orders, and what happens when it ends in the middle of one.
    """

    pause_ms = 3
    """Milliseconds before the next child is made, unless an order waits: making it slows down the one at work."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.over = False
        self.tickets: dict[int, int] = {}
        """The order of each child, by its pid; 0 while it waits for one."""
        self._pid = os.getpid()
        self._taken = os.pipe()
        self._died = os.pipe()

    def prepare(self) -> None:
        """In a child: do everything possible before its order is known."""

    def serve(self) -> None:
        """In a child: take an order, report it and carry it out; return without one if the control socket is closed."""
        raise NotImplementedError

    def on_child_ended(self, pid: int, ticket: int, status: int) -> None:
        """Called when a child with an order has ended."""

    def on_fork_refused(self) -> None:
        """Called when the machine refuses a new child; it is tried again soon."""
        raise NotImplementedError

    def report_order(self, ticket: int) -> None:
        """In a child: report the order it has taken, so that the next child can be made; 0 if it waits for another."""
        os.write(self._taken[1], _REPORT.pack(os.getpid(), ticket))

    def leave(self) -> None:
        """In a child: close everything that it shares with this process."""
        self.control.close()
        for fd in (*self._taken, *self._died):
            os.close(fd)

    def run(self) -> None:
        """Run until the control socket closes; then kill everything that still runs."""
        # SIGCHLD writes to this pipe, so the poll below wakes for dead children, too.
        os.set_blocking(self._died[1], False)
        os.set_blocking(self._taken[0], False)
        signal.set_wakeup_fd(self._died[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._taken[0], select.POLLIN)
        poll.register(self._died[0], select.POLLIN)
        control = self.control.fileno()
        while not self.over:
            # Waiting children read orders from the same socket, and the kernel gives each order to one of them. So this
            # process looks for orders itself only while no child waits, and otherwise only for the end of the other
            # side.
            waits = 0 in self.tickets.values()
            poll.register(control, 0 if waits else select.POLLIN)
            events = dict(poll.poll(None if waits else self.pause_ms))
            self._handle_events(events)
            # A new child is made after a pause without events, when the last one has started its work, or immediately
            # if an order is already waiting.
            if 0 not in self.tickets.values() and not self.over and (not events or control in events):
                self._fork_spare()
        end_orphans(set())

    def _handle_events(self, events: dict[int, int]) -> None:
        if events.get(self.control.fileno(), 0) & (select.POLLHUP | select.POLLERR):
            self.over = True
        ended: list[tuple[int, int]] = []
        if self._died[0] in events:
            os.read(self._died[0], 4096)
            ended = [*reap_children()]
        # Read after the children were reaped: whatever they have reported is in the pipe by now.
        with suppress(BlockingIOError):
            self.tickets.update(_REPORT.iter_unpack(os.read(self._taken[0], _REPORT.size * 256)))
        for pid, status in ended:
            self._handle_end(pid, status)

    def _handle_end(self, pid: int, status: int) -> None:
        if pid not in self.tickets:
            return  # a daemon that this process has adopted
        ticket = self.tickets.pop(pid)
        if ticket:
            self.on_child_ended(pid, ticket, status)
            return
        # Without an order, a child ends on its own only when it has found the control socket closed.
        self.over = self.over or status == 0

    def _fork_spare(self) -> None:
        try:
            pid = os.fork()
        except OSError:
            self.on_fork_refused()
            return
        if pid == 0:
            self._run_child()
        self.tickets[pid] = 0

    def _run_child(self) -> NoReturn:
        """Run the child. Whatever happens in it, it never returns into the code of its parent."""
        code = 1
        try:
            # The child must not write into the pipes of its parent when a process of its own ends.
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # First, because a process that changes its user loses the tie to its parent. The parent may have ended
            # before the tie was made: then nothing would ever end this process.
            self.prepare()
            die_with_parent()
            if os.getppid() != self._pid:
                os._exit(1)
            keep_orphans()
            self.serve()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
