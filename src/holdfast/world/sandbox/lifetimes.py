"""The commands of a sandbox that have begun and not yet ended, by process. Standard library only."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.world.holders.wire import UNTOLD, CommandEndMessage
from holdfast.world.sandbox.exec_attempt import ExecImage, executes, leader

CHAIN = 16
"""Commands that one process is followed through, each replaced by the next: it may go on forever."""
_SPARE = 64
"""Descriptors that are not used up for watching."""


class _Begun(NamedTuple):
    number: int
    at_ns: int
    before: ExecImage


@dataclass
class _Process:
    pidfd: int
    commands: list[_Begun] = field(default_factory=list)


class Lifetimes:
    """Follows every process that executed something to its end. `poll` is told of the descriptors to watch."""

    def __init__(self, poll: select.epoll, ended: Callable[[CommandEndMessage], None], most: int) -> None:
        """`most`: how many descriptors this process may have."""
        self._poll = poll
        self._ended = ended
        self._processes: dict[int, _Process] = {}
        self._watched: dict[int, int] = {}
        """Process ids by descriptor."""
        self._most = most

    def begins(self, pid: int, number: int, before: ExecImage) -> None:
        """A process, or a thread that takes it over, is about to execute a command in the place of `before`."""
        pid, pidfd = self._led(pid)
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process(self._watch(pid, pidfd))
        elif pidfd >= 0:
            os.close(pidfd)
        self._refused(process, before)
        if len(process.commands) == CHAIN:
            self._end(process.commands.pop(), None)
        process.commands.append(_Begun(number, time.monotonic_ns(), before))

    def exits(self, pid: int, code: int) -> None:
        """A process is about to exit: all that it was has ended so, for whoever started it."""
        if pid not in self._processes:
            pid, pidfd = self._led(pid)
            if pidfd >= 0:
                os.close(pidfd)
        process = self._forget(pid)
        if process is not None:
            last = process.commands[-1]
            if executes(pid, last.before):
                self._refused(process, last.before)
            self._all_end(process, code)

    def dies(self, pidfd: int) -> bool:
        """That descriptor has something to tell; whether it is one of ours: then its process is gone."""
        pid = self._watched.get(pidfd)
        process = None if pid is None else self._forget(pid)
        if process is not None:
            self._all_end(process, None)
        return pid is not None

    def close(self) -> None:
        """Nothing is left of them all."""
        for pid in list(self._processes):
            process = self._forget(pid)
            if process is not None:
                self._all_end(process, None)

    def _refused(self, process: _Process, now: ExecImage) -> None:
        """The process is what it was before its last command: that was never executed."""
        if process.commands and process.commands[-1].before == now:
            self._ended(CommandEndMessage(process.commands.pop().number))

    def _all_end(self, process: _Process, code: int | None) -> None:
        for begun in process.commands:
            self._end(begun, code)

    def _end(self, begun: _Begun, code: int | None) -> None:
        took_ns = time.monotonic_ns() - begun.at_ns
        self._ended(CommandEndMessage(begun.number, UNTOLD if code is None else code, took_ns))

    def _led(self, pid: int) -> tuple[int, int]:
        """The process of a thread, and a descriptor of it if it is the first one."""
        try:
            return pid, os.pidfd_open(pid)
        except OSError:  # not the first thread of its process, or gone, or we have too many
            return self._leader(pid), -1

    def _leader(self, pid: int) -> int:
        try:
            return leader(pid)
        except OSError:
            return pid

    def _watch(self, pid: int, pidfd: int) -> int:
        """The descriptor, if there is one to be had: else the end is told with all others."""
        if pidfd < 0:
            try:
                pidfd = os.pidfd_open(pid)
            except OSError:
                return -1
        if pidfd >= self._most - _SPARE:
            os.close(pidfd)
            return -1
        self._poll.register(pidfd, select.EPOLLIN)
        self._watched[pidfd] = pid
        return pidfd

    def _forget(self, pid: int) -> _Process | None:
        process = self._processes.pop(pid, None)
        if process is not None and process.pidfd >= 0:
            del self._watched[process.pidfd]
            self._poll.unregister(process.pidfd)
            os.close(process.pidfd)
        return process
