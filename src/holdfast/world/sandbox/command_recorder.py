"""The log of every program that runs inside a sandbox, and of the faults of its files that it runs into.

As the kernel tells of it: a log, not a guard.

Standard library only. An attempt for which there is no file at all (a shell that tries the folders of its PATH) is
left out; one that the kernel refuses for another reason is told of, and ends with neither code nor duration. A command
that executes another in its place ends with that. One that a signal ends has no code, nor has one whose last thread
ends by `exit` alone, as no C library does. A process could change its arguments between our reading and the kernel's.
"""

from __future__ import annotations

import array as _array  # noqa: F401  # to send a descriptor needs it, when nobody could answer a call to import it
import fcntl
import os
import resource
import select
import signal
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from holdfast.processes.leftovers import die_with_parent
from holdfast.world.holders import wire
from holdfast.world.sandbox import bpf, kernel
from holdfast.world.sandbox.exec_attempt import AT_FDCWD, attempt
from holdfast.world.sandbox.file_calls import told_calls
from holdfast.world.sandbox.file_watch import FileWatch
from holdfast.world.sandbox.lifetimes import Lifetimes

_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_ENDS_AT_ONCE = 100


class CommandRecorder:
    """A child of the holder that writes down what is executed below it. It ends with its holder.

    It must not end before: whoever calls what it is told of would not get an answer. It is there before the filter is,
    so that no call of its own is told to it.
    """

    def __init__(self, line: socket.socket, own: str, watched: Sequence[str] = ()) -> None:
        """`own` is bubblewrap, which we start ourselves; `watched`: what faults of files there will be."""
        program = bpf.tell_of_programs(more=told_calls(watched) if watched else ())
        self._orders, orders = wire.pair()
        holder = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_parent()
                self._orders.close()
                if os.getppid() == holder and (first := wire.receive(orders)) is not None:
                    _Writing(line, first.fds[0], orders, own.encode()).run()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        orders.close()
        told = kernel.listen_to_calls(program)
        wire.send(self._orders, wire.START, 0, fds=[told])
        os.close(told)

    def settle(self, ticket: int) -> None:
        """Nothing runs any more: the end of each command is told, and then that this order is done."""
        wire.send(self._orders, wire.FREEZE, ticket)

    def watch(self, ticket: int, number: int, order: int, upper: str) -> None:
        """From now on a fault of files is watched, and this order is done; `order` is a descriptor of it."""
        wire.send(self._orders, wire.WATCH, ticket, number, text=os.fsencode(upper), fds=[order])


class _Writing:
    """The recorder at work."""

    def __init__(self, line: socket.socket, told: int, orders: socket.socket, own: bytes) -> None:
        self._line = line
        self._told = told
        self._orders = orders
        self._own = own
        self._files = FileWatch(own)
        self._number = 0
        self._ends: list[wire.CommandEndMessage] = []
        self._executing, self._executing_at, self._exiting = bpf.program_calls()
        self._poll = select.epoll()
        self._poll.register(told, select.EPOLLIN)
        self._poll.register(orders.fileno(), select.EPOLLIN)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._lives = Lifetimes(self._poll, self._ended, most)

    def run(self) -> None:
        """For ever. The dead come first: a new process may have the number of one of them."""
        while True:
            ready = [fd for fd, _ in self._poll.poll()]
            ours = [fd for fd in ready if not self._lives.dies(fd)]
            if self._told in ours:
                self._next()
            if self._orders.fileno() in ours:
                self._obey()

    def _next(self) -> None:
        """Takes the next call, tells of it, and only then lets it be made."""
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._told, _RECEIVE, buffer)
        except OSError:  # whoever called has been killed
            return
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(buffer)
        for hit in self._files.hits(pid, call, arguments):
            self._tell(wire.HIT, hit)
        if call == self._exiting:
            self._lives.exits(pid, arguments[0] & 0xFF)
        elif call == self._executing:
            self._begin(pid, AT_FDCWD, *arguments[:2])
        elif call == self._executing_at:
            self._begin(pid, *arguments[:3])
        with suppress(OSError):  # killed while it waited
            fcntl.ioctl(self._told, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _CONTINUE)))

    def _begin(self, pid: int, folder: int, path: int, argv: int) -> None:
        try:
            found = attempt(pid, folder, path, argv, self._own)
        except (OSError, ValueError, OverflowError):  # it is gone, or points nowhere
            return
        if found is not None:
            self._number += 1
            self._tell(wire.COMMAND, self._number, found.record)
            self._lives.begins(pid, self._number, found.image)

    def _ended(self, end: wire.CommandEndMessage) -> None:
        """Ends are told many at a time: each message takes Holdfast's time from whatever runs inside."""
        self._ends.append(end)
        if len(self._ends) >= _ENDS_AT_ONCE:
            self._tell_ends()

    def _tell_ends(self) -> None:
        self._tell(wire.OVER, 0, wire.ends_written(self._ends))
        self._ends.clear()

    def _obey(self) -> None:
        order = wire.receive(self._orders)
        if order is None:  # the holder is ending, and we end with it
            self._poll.unregister(self._orders.fileno())
            return
        if order.what == wire.WATCH:
            self._files.add(order.value, wire.watch_of(order.fds[0]), os.fsdecode(order.text))
        else:
            self._lives.close()
            self._tell_ends()
        self._tell(wire.DONE, order.ticket)

    def _tell(self, what: int, ticket: int, text: bytes = b"") -> None:
        with suppress(OSError):  # nobody listens any more, and what runs still waits for our answers
            wire.send(self._line, what, ticket, text=text)
