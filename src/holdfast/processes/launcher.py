"""Holdfast's end of the launch host: starts programs, reports how they end, and kills those that do not end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from holdfast.errors import AgentLost
from holdfast.processes.launch_host import EXITED, LOST, NOTICE, REFUSED, STARTED, TICKET, pack_program
from holdfast.processes.leftovers import end_marked, kill_group
from holdfast.processes.pipes import read_now
from holdfast.processes.program import KILL_S, MemoryEnd, Program
from holdfast.protocols.sandbox import Stdio

MARK = "HOLDFAST_INSTANCE"
"""A variable in the environment of every program and its children, to find them if the launch host is killed."""


class Launcher:
    """Starts programs through one launch host, which is replaced if something kills it. Close it after use."""

    def __init__(self, *, marks: bool = True) -> None:
        """Without `marks`, Holdfast adds no variable to a program's environment."""
        self._loop = asyncio.get_running_loop()
        self._mark = {MARK: os.urandom(8).hex()} if marks else {}
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._gone = asyncio.Event()
        self._messages = bytearray()
        self._tickets = 0
        self._programs: dict[int, Program] = {}
        self._starting: dict[int, asyncio.Future[int]] = {}
        """Errno by ticket: 0 once the program runs."""

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        stdio: Stdio,
        memory_end: MemoryEnd = lambda status, by_us: "",
    ) -> Program:
        """Execute a program, found on the PATH of `env` unless it is a path; raise OSError if the system cannot."""
        if self._control is None:
            self._open()
        order = pack_program(argv, {**env, **self._mark}, str(cwd))
        program, begun = Program(None, self.listen, memory_end), self._loop.create_future()
        self._tickets += 1
        ticket = self._tickets
        # Registered before the order is sent, because the report of the start may arrive before this task runs again.
        self._programs[ticket], self._starting[ticket] = program, begun
        try:
            with _write_to_file(order) as written:
                await self._send_order(ticket, (written.fileno(), *stdio))
            async with asyncio.timeout(KILL_S):
                refused = await begun
        # An interrupted start may still happen in the host. A program that is known by now is killed here; one that is
        # reported later has no entry any more, and is killed by the handler of that report.
        except BaseException as interrupted:
            if self._programs.pop(ticket, None) is not None:  # if it starts nevertheless, it is killed then
                kill_group(program.pid, signal.SIGKILL)
            if isinstance(interrupted, TimeoutError):
                raise AgentLost(f"the launch host started nothing within {KILL_S:g} s") from None
            raise
        finally:
            del self._starting[ticket]
        if refused:
            self._programs.pop(ticket, None)
            raise OSError(refused, os.strerror(refused), argv[0])
        return program

    async def close(self) -> None:
        """Kill everything that it started, and the launch host."""
        if self._control is None or self._process is None:
            return
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)  # the host kills everything, then exits
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_S):
                await self._gone.wait()
        self._on_lost()

    def listen(self) -> None:
        """Read the launch host's reports."""
        if self._control is None:
            return
        data = read_now(self._control.fileno())
        if data is None:
            return
        if not data:
            self._on_lost()
            return
        self._messages += data
        whole = len(self._messages) - len(self._messages) % NOTICE.size
        notices = bytes(self._messages[:whole])
        del self._messages[:whole]
        for what, ticket, value, took_ns, left in NOTICE.iter_unpack(notices):
            self._handle_notice(what, ticket, value, took_ns / 1e6, left)

    def _open(self) -> None:
        # The host sees the end of this socket, however Holdfast ends: that is how it knows when to end everything.
        own, hosts = socket.socketpair()
        try:
            self._process = spawn_own_program("holdfast.processes.launch_host", hosts.fileno())
        except OSError as broken:
            own.close()
            raise AgentLost(f"the launch host could not be started: {broken}") from broken
        finally:
            hosts.close()
        own.setblocking(False)
        self._control = own
        self._gone.clear()
        self._loop.add_reader(own.fileno(), self.listen)

    async def _send_order(self, ticket: int, fds: Sequence[int]) -> None:
        while self._control is not None:
            try:
                socket.send_fds(self._control, [ticket.to_bytes(TICKET, "big")], fds)
            except BlockingIOError:  # very many concurrent starts
                await asyncio.sleep(0.001)
            except OSError:
                self._on_lost()
            else:
                return
        raise AgentLost("the launch host is gone")

    def _handle_notice(self, what: int, ticket: int, value: int, took_ms: float, left: int) -> None:
        program = self._programs.get(ticket)
        if what == STARTED and program is None:
            kill_group(value, signal.SIGKILL)  # the caller was interrupted
        elif what == STARTED and program is not None:
            program.pid, program.keeper = value, left
            _set_started(self._starting.get(ticket), 0)
        elif what == REFUSED:
            _set_started(self._starting.get(ticket), value)
        elif what in (EXITED, LOST) and program is not None:
            begun = self._starting.get(ticket)
            if what == LOST and not left and begun is not None and not begun.done():
                begun.set_exception(AgentLost("the launch host died before it started the program"))
            _set_started(begun, 0)  # otherwise its keeper was killed before it could report the start
            self._programs.pop(ticket)
            program.finish(value if what == EXITED else None, took_ms, left)

    def _on_lost(self) -> None:
        """Handle the loss of the launch host.

        If it was killed, the programs it started are found by their mark.
        """
        control, process = self._control, self._process
        if control is None or process is None:
            return
        self._loop.remove_reader(control.fileno())
        control.close()
        self._control = self._process = None
        self._gone.set()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)  # the socket closes slightly before the process is gone
        # A host that was killed left its daemons to init. Only the mark in their environment still tells that they are
        # ours.
        survivors: set[int] = set()
        if process.poll() != 0:
            kill_group(process.pid, signal.SIGKILL)
            process.wait()
            survivors = {pid for mark in self._mark.items() for pid in end_marked(*mark)}
        self._messages.clear()
        for begun in self._starting.values():
            if not begun.done():
                begun.set_exception(AgentLost("the launch host died"))
        for program in self._programs.values():
            program.finish(None, survivors=len(survivors), lost=True)
        self._programs.clear()


def spawn_own_program(
    module: str, control: int, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `main` of a module that needs only the standard library, with a control socket as its first argument."""
    # -I and -S keep the user's variables and packages out, so the folder of this package comes as the last argument.
    program = f"import sys; sys.path.insert(0, sys.argv.pop()); from {module} import main; main()"
    return subprocess.Popen(  # noqa: S603  # our own program; starting it takes 1 ms
        [sys.executable, "-I", "-S", "-c", program, str(control), *words, str(Path(__file__).parents[2])],
        pass_fds=[control],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=env,
    )


def _write_to_file(data: bytes) -> IO[bytes]:
    """Return the data as a file, in memory if possible: an order of any size fits into one message."""
    # A message has a maximum size, which arguments and environment may exceed. A descriptor of a file has none.
    if sys.platform == "linux":
        file: IO[bytes] = os.fdopen(os.memfd_create("holdfast-order"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(data)
    file.flush()
    return file


def _set_started(begun: asyncio.Future[int] | None, errno: int) -> None:
    if begun is not None and not begun.done():
        begun.set_result(errno)
