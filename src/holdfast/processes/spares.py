"""A process that keeps one child ready for the next order: forking takes as long as starting a small program.

The launch host, the sandbox host and the host of a Python agent are such processes. All are single-threaded, so a fork
is safe, and adopt whatever daemonises below them, so nothing that a child leaves behind escapes.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from typing import NoReturn

from holdfast.processes.leftovers import die_with_parent, end_orphans, keep_orphans, reap_children


class SpareChild:
    """This process: its control socket and its children, one of which always waits for an order.

    A subclass defines what a child prepares, how it serves its order, and what happens when a child takes an order or
    ends.
    """

    pause_ms = 3
    """Milliseconds before the next child is made, unless an order waits: making it slows down the one at work."""
    report_bytes = 1
    """Size of a child's report when it takes an order."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.over = False
        self._pid = os.getpid()
        self.spare = 0
        """The newest child, while it waits for an order."""
        self._taken = os.pipe()
        self._died = os.pipe()

    def prepare(self) -> None:
        """In a child: do everything possible before its order is known."""

    def serve(self) -> int:
        """In a child: take an order, report it and carry it out; return its exit code."""
        raise NotImplementedError

    def on_child_started(self, pid: int) -> None:
        """Called when a child was made."""

    @property
    def ready(self) -> bool:
        """Whether a child waits for an order."""
        return bool(self.spare)

    def on_order_taken(self, report: bytes) -> None:
        """Called when a child has taken an order."""
        self.spare = 0

    def on_child_ended(self, pid: int, status: int, *, spare: bool) -> None:
        """Called when a child has ended; `spare` means that it had no order."""

    def on_fork_refused(self) -> None:
        """Called when the machine refuses a new child; it is tried again soon."""
        raise NotImplementedError

    def report_taken(self, report: bytes) -> None:
        """In a child: report that its order is taken, so that the next child can be made."""
        os.write(self._taken[1], report)

    def leave(self) -> None:
        """In a child: close everything that it shares with this process."""
        self.control.close()
        for fd in (*self._taken, *self._died):
            os.close(fd)

    def run(self) -> None:
        """Run until the control socket closes; then kill everything that still runs."""
        # SIGCHLD writes to this pipe, so the poll below wakes for dead children, too.
        os.set_blocking(self._died[1], False)
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
            poll.register(control, 0 if self.ready else select.POLLIN)
            events = dict(poll.poll(None if self.ready else self.pause_ms))
            self._handle_events(events)
            # A new child is made after a pause without events, when the last one has started its work, or immediately
            # if an order is already waiting.
            if not self.ready and not self.over and (not events or control in events):
                self._fork_spare()
        end_orphans(set())

    def _handle_events(self, events: dict[int, int]) -> None:
        if events.get(self.control.fileno(), 0) & (select.POLLHUP | select.POLLERR):
            self.over = True
        if self._taken[0] in events:
            self.on_order_taken(os.read(self._taken[0], self.report_bytes))
        if self._died[0] in events:
            os.read(self._died[0], 4096)
            for pid, status in reap_children():
                spare = pid == self.spare
                if spare:
                    self.spare = 0
                self.on_child_ended(pid, status, spare=spare)

    def _fork_spare(self) -> None:
        try:
            pid = os.fork()
        except OSError:
            self.on_fork_refused()
            return
        if pid == 0:
            self._run_child()
        self.on_child_started(pid)
        self.spare = pid

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
            code = self.serve()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
