"""The small program that starts agents for Holdfast: single-threaded, standard library only.

`processes/launcher.py` starts it with a control socket. Each order goes to a keeper: a fork of this process that starts
one program in a new session, adopts whatever daemonises below it, and kills all of that when the program has ended. A
keeper with nothing left below it takes the next order. When the control socket closes, Holdfast is gone, and everything
is killed.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence

from holdfast.processes.leftovers import end_orphans, has_children, keep_orphans, kill_group
from holdfast.processes.spares import SpareChild

TICKET = 8
"""Size of an order on the control socket in bytes; the rest of it arrives as descriptors."""


def spawn(fds: list[int]) -> int:
    """Start the program that the first descriptor describes, in a new session; the others become its stdin, stdout and
    stderr.

    Raises OSError if it cannot be executed.
    """
    written, *stdio = fds
    argv, env, cwd = unpack_program(os.pread(written, os.fstat(written).st_size, 0))
    # posix_spawnp takes no working folder and searches the PATH of this process, so both are set here. A keeper runs
    # one program at a time and has no threads: nobody else sees the change.
    os.chdir(cwd)
    os.environb[b"PATH"] = env.get(b"PATH", os.fsencode(os.defpath))  # where posix_spawnp searches
    return os.posix_spawnp(
        argv[0],
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(stdio)],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these; a program expects them
    )


def close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def pack_program(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> bytes:
    """Return the program to run as bytes; raise ValueError for a NUL, which no argument can contain."""
    parts = [cwd, str(len(argv)), *argv, *[f"{name}={value}" for name, value in env.items()]]
    data = "\0".join(parts)
    if data.count("\0") != len(parts) - 1:
        raise ValueError("a NUL character in an argument or variable")
    return os.fsencode(data)


def unpack_program(data: bytes) -> tuple[list[bytes], dict[bytes, bytes], bytes]:
    cwd, count, *rest = data.split(b"\0")
    argv, variables = rest[: int(count)], rest[int(count) :]
    pairs = [variable.partition(b"=") for variable in variables]
    return argv, {name: value for name, _, value in pairs}, cwd


def receive_order(control: socket.socket) -> tuple[int, list[int]] | None:
    """Wait for the next order, and return its ticket and descriptors; None when the socket is closed."""
    try:
        ticket, fds, _, _ = socket.recv_fds(control, TICKET, 4)
    except OSError:
        return None
    # recv_fds drops the close-on-exec flag. Without it, every later program would inherit the descriptors of this one.
    for fd in fds:
        os.set_inheritable(fd, False)
    return (int.from_bytes(ticket, "big"), list(fds)) if ticket else None


NOTICE = struct.Struct("=Bqqqq")
"""The report: what happened, the ticket, a value, the run time in nanoseconds, the number of surviving processes.

For a started program, the last is the pid of its keeper: everything that the program starts is below it.
"""
LINGER_S = 4.0
"""Time for a group whose first process obeyed SIGTERM: longer than Holdfast's own grace period, which ends it."""
STOPPED = (signal.SIGTERM, 128 + signal.SIGTERM << 8)
"""The waitpid status of a process that obeys SIGTERM: a shell may turn it into an exit code."""
STARTED, REFUSED, EXITED, LOST = 1, 2, 3, 4
"""The value is a pid, an errno, a waitpid status, or nothing because its keeper was killed."""


_LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]


class LaunchHost(SpareChild):
    """Runs keepers as child processes, each for one program at a time."""

    pause_ms = 4

    def on_child_ended(self, pid: int, ticket: int, status: int) -> None:
        """Kill the program of a keeper that was killed."""
        # A keeper that was killed could not clean up after its program. This process is the next subreaper above it, so
        # the program and its daemons are its own children by now.
        if status != 0:
            self._report(LOST, ticket, left=len(end_orphans(set(self.tickets))))

    def on_fork_refused(self) -> None:
        """Take the next order, if one arrives soon, and report that it cannot be executed."""
        if not select.select([self.control], [], [], 0.05)[0]:
            return
        received = receive_order(self.control)
        if received is None:
            self.over = True
            return
        ticket, fds = received
        close_all(fds)
        self._report(REFUSED, ticket, errno.EAGAIN)

    def serve(self) -> None:
        """Run one program after the other, until a program leaves something behind, or changes this process."""
        state = read_inherited_state()
        while (received := receive_order(self.control)) is not None:
            self.report_order(received[0])
            self._keep(*received)
            # A keeper is reused only if the next program would find it exactly as the last one did: no leftover
            # processes, and no changed limits, priority or cores. Forking another one takes twice as long as a program.
            if has_children() or read_inherited_state() != state:
                return
            self.report_order(0)

    def _keep(self, ticket: int, fds: list[int]) -> None:
        """Start the program, wait for its end, and end its leftovers."""
        began = time.monotonic_ns()
        try:
            pid = spawn(fds)
        except OSError as refused:
            self._report(REFUSED, ticket, refused.errno or 0)
            return
        finally:
            close_all(fds)
        self._report(STARTED, ticket, pid, left=os.getpid())
        # Daemons of the program become children of this process when their parent ends, so `wait` may report other
        # processes.
        ended, status = os.wait()
        while ended != pid:
            ended, status = os.wait()
        took_ns = time.monotonic_ns() - began
        # If a shell started the agent, SIGTERM ends the shell first: the agent itself gets time to clean up.
        if status in STOPPED:
            linger(pid)
        # First the group, then the daemons that left it: those have become children of this process.
        kill_group(pid, signal.SIGKILL)
        survivors = end_orphans(set())
        self._report(EXITED, ticket, status, took_ns, len(survivors))

    def _report(self, what: int, ticket: int, value: int = 0, took_ns: int = 0, left: int = 0) -> None:
        try:
            os.write(self.control.fileno(), NOTICE.pack(what, ticket, value, took_ns, left))
        except OSError:
            return  # nobody listens any more: the closed socket ends everything


def read_inherited_state() -> tuple[object, ...]:
    """Return the state that a program inherits from this process and that another program could have changed: limits,
    priority, cores."""
    state = (*map(resource.getrlimit, _LIMITS), os.getpriority(os.PRIO_PROCESS, 0))
    if sys.platform != "linux":
        return state
    try:
        with open("/proc/self/oom_score_adj", "rb") as file:
            score = file.read()
    except OSError:  # with so little left, no program could be started either
        return (object(),)
    return (*state, os.sched_getaffinity(0), os.sched_getscheduler(0), score)


def linger(group: int) -> None:
    """Give the rest of a group time to end: if a shell started the agent, the shell has ended first."""
    # A group lives as long as one of its processes does, and signal 0 tells whether it lives. Dead members are reaped,
    # because a zombie counts as a member, too.
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
    """Run until the control socket closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)  # no agent may inherit it
    # Daemons become children of the nearest subreaper when their parent ends. If that were init, nobody could find
    # them.
    keep_orphans()
    LaunchHost(control).run()
