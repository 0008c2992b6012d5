"""Records every program that runs inside a sandbox, and the file faults that it hits. Standard library only.

A seccomp filter stops every exec, exit and watched file call and notifies this process, which reads the arguments from
the caller's memory, reports them and lets the call continue. It is a log, not a guard: a process could change its
arguments between this read and the kernel's.

An attempt to execute a missing file (a shell that tries the folders of its PATH) is not recorded. An attempt that the
kernel refuses for another reason is recorded without exit code or duration. A command that executes another in its
place ends with that one. A command killed by a signal has no exit code, and neither has one whose last thread ends by
`exit` alone, which no C library does.
"""

from __future__ import annotations

import array as _array  # noqa: F401  # to send a descriptor needs it, when nobody could answer a call to import it
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast.processes.leftovers import die_with_parent
from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.file_watch import FileWatch
from holdfast.world.sandbox.stopped_calls import (
    AT_CWD,
    ExecImage,
    find_leader,
    is_executing,
    list_reported_calls,
    read_attempt,
)
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.messages import CommandEndMessage

EXEC_CHAIN_LIMIT = 16
"""Maximum number of commands that one process is followed through, as it may call exec forever."""
_SPARE = 64
"""Descriptors reserved for other purposes than watching."""
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_ENDS_PER_MESSAGE = 100


class CommandRecorder:
    """A child of the supervisor that records what is executed below it. It ends with its supervisor."""

    def __init__(self, line: socket.socket, own: str, watched: Sequence[str] = ()) -> None:
        """`own` is bubblewrap, which Holdfast itself starts; `watched` lists the kinds of file faults to expect."""
        # The order matters. The child is forked first, so that the filter, which the supervisor and all that it starts
        # inherit, does not hold for the child: it would wait for its own answer. It must also outlive everybody whom
        # the filter stops, since a stopped call waits until somebody answers it.
        program = kernel.build_report_filter(more=list_reported_calls(watched) if watched else ())
        self._orders, orders = wire.make_pair()
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_parent()
                self._orders.close()
                if os.getppid() == supervisor and (first := wire.receive(orders)) is not None:
                    _RecorderLoop(line, first.fds[0], orders, own.encode()).run()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        orders.close()
        notifications = kernel.listen_to_calls(program)
        wire.send(self._orders, wire.START, 0, fds=[notifications])
        os.close(notifications)

    def settle(self, ticket: int) -> None:
        """Report the end of each command, then complete this order; call it when no program is running."""
        wire.send(self._orders, wire.FREEZE, ticket)

    def watch(self, ticket: int, order: int, upper: str) -> None:
        """Start watching a file fault and complete this order; `order` is a descriptor of its description."""
        wire.send(self._orders, wire.WATCH, ticket, text=os.fsencode(upper), fds=[order])


class _RecorderLoop:
    """The loop of the recorder process."""

    def __init__(self, line: socket.socket, notifications: int, orders: socket.socket, own: bytes) -> None:
        self._line = line
        self._notifications = notifications
        self._orders = orders
        self._own = own
        self._files = FileWatch(own)
        self._number = 0
        self._ends: list[wire.CommandEndMessage] = []
        self._executing, self._executing_at, self._exiting = kernel.get_program_calls()
        self._poll = select.epoll()
        self._poll.register(notifications, select.EPOLLIN)
        self._poll.register(orders.fileno(), select.EPOLLIN)
        # Every live process costs one descriptor here, so the limit is raised as far as it goes. It is this child's own
        # limit: programs inside keep theirs.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._lives = Lifetimes(self._poll, self._add_end, most)

    def run(self) -> None:
        """Run forever. It handles dead processes first, because a new process may reuse the pid of one of them."""
        while True:
            ready = [fd for fd, _ in self._poll.poll()]
            # Ends first, then calls, then orders: a freeze must not be answered before every end that is already known
            # is recorded.
            others = [fd for fd in ready if not self._lives.on_death(fd)]
            if self._notifications in others:
                self._handle_call()
            if self._orders.fileno() in others:
                self._handle_order()

    def _handle_call(self) -> None:
        """Take the next call, report it, and only then let it continue."""
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._notifications, _RECEIVE, buffer)
        except OSError:  # the caller has been killed
            return
        # The caller is stopped until it gets an answer, so the memory at its pointers can be read from /proc/PID/mem.
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(buffer)
        # Before the call continues: it is about to change the files from which the hit is derived.
        for hit in self._files.find_hits(pid, call, arguments):
            self._report(wire.HIT, hit)
        if call == self._exiting:
            self._lives.on_exit(pid, arguments[0] & 0xFF)
        elif call == self._executing:
            self._begin(pid, AT_CWD, *arguments[:2])
        elif call == self._executing_at:
            self._begin(pid, *arguments[:3])
        with suppress(OSError):  # killed while it waited
            fcntl.ioctl(self._notifications, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _CONTINUE)))

    def _begin(self, pid: int, folder: int, path: int, argv: int) -> None:
        try:
            exec_attempt = read_attempt(pid, folder, path, argv, self._own)
        except (OSError, ValueError, OverflowError):  # the caller is gone, or the pointer is invalid
            return
        if exec_attempt is not None:
            self._number += 1
            self._report(wire.COMMAND, self._number, exec_attempt.record)
            self._lives.on_exec(pid, self._number, exec_attempt.image)

    def _add_end(self, end: wire.CommandEndMessage) -> None:
        """Queue the end of a command.

        Each message takes processor time from the sandbox, so ends are reported in batches.
        """
        self._ends.append(end)
        if len(self._ends) >= _ENDS_PER_MESSAGE:
            self._report_ends()

    def _report_ends(self) -> None:
        self._report(wire.OVER, 0, json.dumps(self._ends).encode())
        self._ends.clear()

    def _handle_order(self) -> None:
        order = wire.receive(self._orders)
        if order is None:  # the supervisor is ending, and this process ends with it
            self._poll.unregister(self._orders.fileno())
            return
        if order.what == wire.WATCH:
            self._files.watches.append(replace(wire.read_order(order.fds[0]), upper=os.fsdecode(order.text)))
        else:
            self._lives.close()
            self._report_ends()
        self._report(wire.DONE, order.ticket)

    def _report(self, what: int, ticket: int, text: bytes = b"") -> None:
        with suppress(OSError):  # nobody reads any more, and running programs still wait for answers
            wire.send(self._line, what, ticket, text=text)


class _StartedCommand(NamedTuple):
    number: int
    at_ns: int
    before: ExecImage


@dataclass
class _Process:
    pidfd: int
    commands: list[_StartedCommand] = field(default_factory=list)


class Lifetimes:
    """Follows every process that executed something to its end; `poll` watches their descriptors.

    An exit is seen twice: as the call `exit_group`, which has the code, and as a pidfd that becomes readable, also for
    a process that was killed. Whichever comes first ends the commands of the process.
    """

    def __init__(self, poll: select.epoll, ended: Callable[[CommandEndMessage], None], most: int) -> None:
        """`most` is the maximum number of descriptors of this process."""
        self._poll = poll
        self._ended = ended
        self._processes: dict[int, _Process] = {}
        self._watched: dict[int, int] = {}
        """Process ids by descriptor."""
        self._most = most

    def on_exec(self, pid: int, number: int, before: ExecImage) -> None:
        """Record that a process, or one of its threads, is about to execute a command in place of `before`."""
        # Any thread may call exec, and the process goes on under the number of its first one.
        pid, pidfd = self._open_leader(pid)
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process(self._watch(pid, pidfd))
        elif pidfd >= 0:
            os.close(pidfd)
        # If the process calls exec again with the image from before its last exec, that one failed, and its command
        # never ran.
        self._drop_refused(process, before)
        # A process that executes itself forever must not fill the memory: the newest command gives way.
        if len(process.commands) == EXEC_CHAIN_LIMIT:
            self._end(process.commands.pop(), None)
        process.commands.append(_StartedCommand(number, time.monotonic_ns(), before))

    def on_exit(self, pid: int, code: int) -> None:
        """Record that a process is about to exit: all its commands end with this code."""
        # `exit_group` may come from any thread; the commands belong to the leader.
        if pid not in self._processes:
            pid, pidfd = self._open_leader(pid)
            if pidfd >= 0:
                os.close(pidfd)
        process = self._forget(pid)
        if process is not None:
            last = process.commands[-1]
            if is_executing(pid, last.before):
                self._drop_refused(process, last.before)
            self._end_all(process, code)

    def on_death(self, pidfd: int) -> bool:
        """End the process of a pidfd that became readable; return False if it is not one of the watched pidfds."""
        pid = self._watched.get(pidfd)
        process = None if pid is None else self._forget(pid)
        if process is not None:
            self._end_all(process, None)
        return pid is not None

    def close(self) -> None:
        """Close all descriptors."""
        for pid in list(self._processes):
            process = self._forget(pid)
            if process is not None:
                self._end_all(process, None)

    def _drop_refused(self, process: _Process, now: ExecImage) -> None:
        """Drop the last command if its exec failed: the process still has the memory image from before it."""
        # The kernel does not report whether an exec succeeded. But it puts new random bytes into the memory of each
        # program it executes, so the image tells: the same one as before the exec means that the exec failed.
        if process.commands and process.commands[-1].before == now:
            self._ended(CommandEndMessage(process.commands.pop().number))

    def _end_all(self, process: _Process, code: int | None) -> None:
        for command in process.commands:
            self._end(command, code)

    def _end(self, command: _StartedCommand, code: int | None) -> None:
        took_ns = time.monotonic_ns() - command.at_ns
        self._ended(CommandEndMessage(command.number, code, took_ns))

    def _open_leader(self, pid: int) -> tuple[int, int]:
        """Return the process of a thread, and a pidfd if the thread is its first one."""
        with suppress(OSError):  # not the first thread of its process, or gone, or too many descriptors are open
            return pid, os.pidfd_open(pid)
        with suppress(OSError):
            return find_leader(pid), -1
        return pid, -1

    def _watch(self, pid: int, pidfd: int) -> int:
        """Watch a pidfd, if there is one; without it, the end is reported with all others."""
        if pidfd < 0:
            try:
                pidfd = os.pidfd_open(pid)
            except OSError:
                return -1
        # With too few descriptors left, the process is not watched: a killed one is then reported at the freeze.
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
