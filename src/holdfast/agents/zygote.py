"""A new process for every trial, forked from one that has imported the agent.

One child is always ready: it waits for a trial, runs it and dies. Making it takes as long as a quick
trial, so the next one is made while the last one still runs.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress
from typing import NoReturn

from holdfast.agents.environment import clear_environment
from holdfast.agents.host_protocol import ChildExited, ChildStarted, ForkRefused, lifted, tell
from holdfast.agents.work import Held, next_work, perform_work, redirect, rehearse, settle_streams
from holdfast.processes.leftovers import (
    children_of_this,
    die_with_parent,
    end_orphans,
    ended_children,
    keep_orphans,
    kill_group,
)

REHEARSALS = 20
"""Enough for the interpreter to have settled on its fast paths, which it writes into the code itself."""


class Zygote:
    """The process that is forked."""

    def __init__(self, control: socket.socket, held: Held) -> None:
        self._control = control
        self._held = held
        self._pid = os.getpid()
        self._spared = children_of_this()  # what the agent's import started serves every trial
        self._children: set[int] = set()
        self._ready = 0
        """The child that waits for a trial."""
        self._taken = os.pipe()
        self._died = os.pipe()
        self._poll = select.poll()

    def run(self) -> None:
        """Until the control socket closes; then all that still runs is ended."""
        with suppress(Exception):  # an event loop of the agent's own that cannot be made: its trials will tell
            for _ in range(REHEARSALS):
                rehearse(is_async=self._held.agent.is_async)
        clear_environment()
        os.set_blocking(self._died[1], False)
        signal.set_wakeup_fd(self._died[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        die_with_parent(0)  # from here on we see our parent's end ourselves, and can tidy up
        for fd in (self._taken[0], self._died[0]):
            self._poll.register(fd, select.POLLIN)
        self._breed()
        while self._attend():
            pass
        for pid in self._children:
            kill_group(pid, signal.SIGKILL)
        end_orphans(set())

    def _attend(self) -> bool:
        """Sees to what happened; False when it is over."""
        control = self._control.fileno()
        self._poll.register(control, 0 if self._ready else select.POLLIN)
        for fd, event in self._poll.poll():
            if fd == control:
                if event & select.POLLHUP:
                    return False
                if not self._breed():
                    self._refuse()
            else:
                os.read(fd, 4096)
                if fd == self._taken[0]:
                    self._ready = 0
        self._reap()
        if not self._ready:
            self._breed()
        return True

    def _breed(self) -> bool:
        """Makes the next child; False if the machine does not let us."""
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid == 0:
            self._live()
        self._children.add(pid)
        self._ready = pid
        return True

    def _refuse(self) -> None:
        work = next_work(self._control)
        if work is not None:
            tell(self._control.fileno(), ForkRefused(work.ticket, "the machine allows no more processes"))
            os.close(work.line)
            os.close(work.output)

    def _reap(self) -> None:
        """Tells of every child that ended, once all that it left behind has ended too."""
        for pid, status in ended_children():
            if pid not in self._children:
                continue
            self._children.discard(pid)
            if pid == self._ready:
                self._ready = 0
            kill_group(pid, signal.SIGKILL)
            left = end_orphans(self._spared | self._children)
            tell(self._control.fileno(), ChildExited(pid, status, len(left)))

    def _live(self) -> NoReturn:
        """The child: waits for its trial, runs it and dies."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            die_with_parent()
            if os.getppid() != self._pid:
                os._exit(1)  # it ended before we could tie ourselves to it
            keep_orphans()  # what the agent starts stays below it, also when daemonised
            rehearse(is_async=False)  # a loop that is made and ended takes longer than it saves
            work = next_work(self._control)
            if work is not None:
                tell(self._control.fileno(), ChildStarted(work.ticket, os.getpid()))
                os.write(self._taken[1], b"x")
                for fd in (self._control.fileno(), *self._taken, *self._died):
                    os.close(fd)
                redirect(work.output)
                os.close(work.output)
                perform_work(lifted(work.line), self._held)
                settle_streams()
            code = 0
        finally:
            os._exit(code)
