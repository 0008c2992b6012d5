"""A new process for every trial, forked from one that has imported the agent.

One child is always ready: it waits for a trial, runs it and dies. Making it takes as long as a quick
trial, so the next one is made while the last one still runs.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import NamedTuple, NoReturn

from holdfast.agents.python.host_protocol import (
    Broke,
    ChildExited,
    ChildStarted,
    ForkRefused,
    Message,
    TrialRequest,
    TrialSocket,
    framed,
    lifted,
    read_frame,
    tell,
)
from holdfast.agents.python.loaded import Loaded, ResetFunction
from holdfast.agents.python.turns import clear_environment, perform
from holdfast.model.codec import decoder, encode
from holdfast.model.scenario import CALM, Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes import open_call, traced_call  # noqa: F401  # `perform` needs them: loaded before any child
from holdfast.planes.describe import said
from holdfast.planes.injection import weather  # noqa: F401
from holdfast.processes.leftovers import (
    children_of_this,
    die_with_parent,
    end_orphans,
    ended_children,
    keep_orphans,
    kill_group,
)

_read_request = decoder(TrialRequest).decode  # made before any child, so that none has to


class Held(NamedTuple):
    """The agent in this process."""

    agent: Loaded
    reset: ResetFunction | None
    scenarios: dict[str, Scenario]


class Work(NamedTuple):
    """A trial to run: its ticket, its line and its output pipe."""

    ticket: int
    line: int
    output: int


def next_work(control: socket.socket) -> Work | None:
    """Waits for the next trial to run; None when it is over."""
    data, fds, _, _ = socket.recv_fds(control, 8, 2)
    return Work(int.from_bytes(data, "big"), fds[0], fds[1]) if data else None


def perform_work(line: int, held: Held) -> None:
    """Runs the trial that is asked for on this line."""
    request = _read_request(read_frame(line))
    wire = TrialSocket(line)
    try:
        perform(request, held.scenarios.get(request.trial.scenario, CALM), held.agent, held.reset, wire)
    except Exception as ours:  # the agent's own exceptions have become turns by now
        wire.send(Broke(said(ours)))


def redirect(output: int) -> None:
    """What the agent prints goes to the trial's pipe."""
    os.dup2(output, 1)
    os.dup2(output, 2)


def settle_streams() -> None:
    """Nothing printed so far may come out in a later trial; lines come out at once, for a crash loses the rest."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIO need not have it
        except (OSError, ValueError, AttributeError):
            continue  # the agent closed it, or put something else in its place


class _Silent:
    """A line to nobody."""

    def send(self, message: Message) -> None:
        framed(encode(message))

    def hear(self) -> str | None:
        return None


async def _echo(prompt: str) -> str:
    return prompt


_ECHO = {False: Loaded(str, is_async=False), True: Loaded(_echo, is_async=True)}
_REHEARSAL = encode(TrialRequest(Trial("0" * 12, "control", "", Task(("",))), ""))


def rehearse(*, is_async: bool) -> None:
    """Goes through a trial of nothing: the memory that a trial writes to is this process's own by then."""
    perform(_read_request(_REHEARSAL), CALM, _ECHO[is_async], None, _Silent())


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
