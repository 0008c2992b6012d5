"""The process that holds one sandbox: its namespaces, its mounts, its programs. Standard library only.

It serves its line to Holdfast until that closes; then it kills all programs and exits, and the mounts vanish with it.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from holdfast.processes.leftovers import end_orphans, reap_children
from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.command_recorder import CommandRecorder
from holdfast.world.sandbox.differences import find_differences
from holdfast.world.sandbox.mounts import BEFORE, ROOT, SandboxMounts
from holdfast.world.sandbox.sandboxed_program import ProgramLookup, SandboxedProgram, list_replaced_mounts, start
from holdfast.world.sandbox.system import System
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.messages import SandboxLayout, StartOrder, SupervisorMessage

_OWN_MEMORY = 64_000_000
"""Address space that a supervisor itself needs."""
_DEPTH = 10_000
"""Recursion limit: more than the folders a path can have."""


def prepare_sandbox(machine: System) -> SandboxMounts:
    """Leave the host's users, network and mounts, and prepare a sandbox ahead of its order.

    Raises OSError if it cannot.
    """
    uid, gid = os.getuid(), os.getgid()
    # The user namespace comes first: in it, an unprivileged process has every right over the namespaces that it makes
    # next, and none over the host's. Its ids map to themselves, so files keep their owner and the agent does not appear
    # as root. The network namespace has nothing but loopback, which starts down: no packet leaves it.
    kernel.unshare(kernel.NEWUSER | kernel.NEWNET)
    kernel.map_self(uid, gid)
    kernel.raise_loopback()
    mounts = SandboxMounts(machine)
    # Computed here and cached, before any order arrives. By then, only this process uses the memory that it writes to.
    if kernel.can_filter():
        kernel.build_guard()
    wire.read_order(wire.write_order(SandboxLayout()))
    return mounts


class Supervisor:
    """Serves one sandbox."""

    def __init__(self, line: socket.socket, mounts: SandboxMounts) -> None:
        self._line = line
        self._mounts = mounts
        self._programs: dict[int, SandboxedProgram] = {}
        """Programs by the pid of their bubblewrap."""
        self._freezing: list[int] = []
        """Tickets of freeze requests that wait for the last program to end."""
        self._recorder: CommandRecorder | None = None
        self._groups: tuple[int, ...] = ()
        """The descriptors of the control groups that programs enter.

        The supervisor stays outside to survive the agent's limits.
        """
        self._readers: set[int] = set()
        """Child processes that read changes."""
        self._orders: Mapping[int, Callable[[SupervisorMessage], None]] = {
            wire.START: self._start,
            wire.SIGNAL: self._signal,
            wire.CONNECT: self._connect,
            wire.SNAPSHOT: self._snapshot,
            wire.FREEZE: self._freeze,
            wire.CHANGES: self._send_changes,
            wire.WATCH: self._watch,
        }

    def run(self, layout: SandboxLayout, fds: tuple[int, ...]) -> None:
        """Serve requests until the line closes; then end everything."""
        gc.disable()  # nothing here makes reference cycles
        # SIGCHLD wakes the poll below through this pipe: one loop then handles requests and dead programs, without
        # races between a signal and the wait.
        died, dying = os.pipe()
        os.set_blocking(dying, False)
        signal.set_wakeup_fd(dying, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            trees = len(fds) - layout.groups
            self._groups = fds[trees:]
            self._open(layout, fds[:trees])
            self._serve_orders(died)
        except OSError as broken:
            self._report(wire.BROKE, 0, text=f"{broken.errno} {broken}")
        finally:
            for program in self._programs.values():
                program.signal(signal.SIGKILL)
            end_orphans(self._spared)  # the recorder ends with this process: until then, even this exit needs it

    @property
    def _spared(self) -> set[int]:
        return set() if self._recorder is None else {self._recorder.pid}

    def _open(self, layout: SandboxLayout, trees: tuple[int, ...]) -> None:
        self._layout = layout
        # The order matters. The kernel accepts a filter from an unprivileged process only after no_new_privs. The
        # recorder forks before the limits are set, so that the agent's limits do not apply to it.
        listeners = [socket.create_server(address, backlog=128) for address in layout.listen]
        view = self._mounts.mount_layout(layout, trees)
        kernel.forgo_privileges()
        if kernel.can_filter():  # set here, so that it also holds for bubblewrap's own processes inside
            kernel.filter_calls(kernel.build_guard())
        if layout.commands or layout.watched:
            self._recorder = CommandRecorder(self._line, layout.bwrap, layout.watched)
        _limit(layout)
        home = self._mounts.open_home_view()
        fds = [view, home, *(listener.fileno() for listener in listeners)]
        own = " ".join(map(str, self._spared))
        self._report(wire.DONE, 0, os.getpid(), text=own, fds=fds)
        os.close(view)
        os.close(home)
        for listener in listeners:
            listener.close()

    def _serve_orders(self, died: int) -> None:
        poll = select.poll()
        poll.register(self._line.fileno(), select.POLLIN)
        poll.register(died, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if died in ready:
                os.read(died, 4096)
                self._reap()
            if self._line.fileno() in ready:
                message = wire.receive(self._line)
                if message is None:
                    return
                self._orders[message.what](message)

    def _start(self, message: SupervisorMessage) -> None:
        written, *stdio = message.fds
        throwaway, layer = "", None
        try:
            order: StartOrder = wire.read_order(written)
            if message.value:
                throwaway, layer = self._mounts.open_throwaway()
            # bubblewrap itself would start and then fail inside, with an exit code that a program could have, too. So a
            # missing program is found here, and is an error like that of any exec.
            lookup = ProgramLookup({"/": ROOT, **list_replaced_mounts(layer)})
            refused = lookup.find_refusal(order.argv[0], order.env.get("PATH"), order.cwd)
            if refused:
                raise OSError(refused, os.strerror(refused))
            pid, status_fd = start(self._layout.bwrap, order, layer, stdio, self._groups, nested=self._layout.nested)
            self._programs[pid] = SandboxedProgram(message.ticket, pid, status_fd, throwaway)
            self._report(wire.DONE, message.ticket)
        except OSError as refusal:
            self._forget(throwaway)
            self._report(wire.REFUSED, message.ticket, refusal.errno or errno.EIO, text=str(refusal))
        finally:
            for fd in stdio:
                os.close(fd)

    def _reap(self) -> None:
        for pid, status in reap_children():
            self._readers.discard(pid)
            program = self._programs.pop(pid, None)
            if program is not None:
                self._handle_end(program, status)
        if not self._programs:
            for ticket in self._freezing:
                if self._recorder is None:
                    self._report(wire.DONE, ticket)
                else:
                    self._recorder.settle(ticket)
            self._freezing.clear()

    def _handle_end(self, program: SandboxedProgram, status: int) -> None:
        """Handle the end of a program.

        Bubblewrap may end before its child, which then becomes a child of this process.
        """
        # The time is read first: cleaning up may take longer than the program ran.
        took_ns = program.took_ns
        end_orphans({*self._programs, *self._readers, *self._spared})
        self._forget(program.throwaway)
        value = status if program.has_run() or os.WIFSIGNALED(status) else wire.UNKNOWN
        program.close()
        self._report(wire.ENDED, program.ticket, value, took_ns)

    def _forget(self, throwaway: str) -> None:
        if throwaway:
            self._mounts.forget(throwaway)

    def _signal(self, message: SupervisorMessage) -> None:
        for program in self._programs.values():
            if program.ticket == message.ticket:
                program.signal(message.value)

    def _freeze(self, message: SupervisorMessage) -> None:
        # Killing is asynchronous. The reply to the freeze is sent by _reap once the last program is gone, so nothing
        # can change the workspace after it.
        for program in self._programs.values():
            program.signal(signal.SIGKILL)
        self._freezing.append(message.ticket)
        self._reap()

    def _snapshot(self, message: SupervisorMessage) -> None:
        # A running program could hold files of the old upper layer open and write to it after it became a lower one.
        if self._programs:
            self._report(wire.REFUSED, message.ticket, errno.EBUSY, text="a program is still running")
            return
        try:
            view = self._mounts.snapshot()
        except OSError as refused:
            self._report(wire.REFUSED, message.ticket, refused.errno or errno.EIO, text=str(refused))
            return
        self._report(wire.DONE, message.ticket, fds=[view])
        os.close(view)

    def _watch(self, message: SupervisorMessage) -> None:
        """Forward the request to the recorder, which replies."""
        (order,) = message.fds
        if self._recorder is not None:
            self._recorder.watch(message.ticket, order, self._mounts.upper)
        os.close(order)

    def _connect(self, message: SupervisorMessage) -> None:
        """Hand over a connection that may still be in progress: a program inside cannot block this process."""
        family = socket.AF_INET6 if message.text == b"6" else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            refused = connection.connect_ex(("::1" if message.text == b"6" else "127.0.0.1", message.value))
            if refused not in (0, errno.EINPROGRESS):
                self._report(wire.REFUSED, message.ticket, refused, text=os.strerror(refused))
                return
            self._report(wire.DONE, message.ticket, fds=[connection.fileno()])

    def _send_changes(self, message: SupervisorMessage) -> None:
        """Read changes in a child process: with permission for every file here, and at the speed of its reader."""
        # A fork, because walking a large layer takes seconds and this process must keep answering. The child inherits
        # the mounts, and a slow reader blocks only the child.
        reader = os.fork()
        if reader:
            self._readers.add(reader)
            os.close(message.fds[0])
            return
        try:
            sys.setrecursionlimit(_DEPTH)
            with open(message.fds[0], "wb", closefd=False) as out:
                for path, op, size in find_differences(self._mounts.upper, BEFORE):
                    printable = os.fsencode(path).decode("utf-8", "backslashreplace")
                    out.write(json.dumps((printable, op, size)).encode() + b"\n")
                out.write(b".")
        finally:
            os._exit(0)

    def _report(self, *head: int, text: str = "", fds: Sequence[int] = ()) -> None:
        """Send a message: its type, ticket, value and nanoseconds."""
        with suppress(OSError):  # nobody reads any more: the closed line ends this process
            wire.send(self._line, *head, text=text.encode("utf-8", "replace"), fds=fds)


def _limit(layout: SandboxLayout) -> None:
    """Limit this process and so every program: the kernel counts them per user namespace."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (layout.pids, layout.pids))
    if layout.memory is not None:
        memory = max(layout.memory, _OWN_MEMORY)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
