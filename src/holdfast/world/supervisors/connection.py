"""Holdfast's end of the line to a supervisor: orders, replies, the programs it runs, connections into the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Callable, Sequence

from holdfast.errors import HarnessError, SandboxFailed
from holdfast.processes.program import KILL_S, MemoryEnd, Program, await_all
from holdfast.protocols.sandbox import Stdio
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.messages import SupervisorMessage

SUPERVISOR_GONE = "the process that held the sandbox is gone"


class SupervisorConnection:
    """The line to one supervisor: orders and their replies, and notices in between."""

    def __init__(
        self, ours: socket.socket, notice: Callable[[SupervisorMessage], None], lost: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = ours
        self._notice = notice
        self._lost = lost
        self._tickets = 0
        self._pending: dict[int, asyncio.Future[SupervisorMessage]] = {}
        self.closed = asyncio.Event()
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self.listen)

    def fileno(self) -> int:
        return self._socket.fileno()

    def make_ticket(self) -> int:
        """Return a new ticket number for an order."""
        self._tickets += 1
        return self._tickets

    def expect(self, ticket: int) -> None:
        """Register a reply to that ticket; call it before the reply can arrive."""
        self._pending[ticket] = self._loop.create_future()

    async def ask(
        self, what: int, value: int = 0, *, ticket: int = 0, text: bytes = b"", fds: Sequence[int] = ()
    ) -> SupervisorMessage:
        """Send an order and wait for its reply.

        Raises OSError if it is refused, HarnessError if the supervisor is gone.
        """
        ticket = ticket or self.make_ticket()
        self.expect(ticket)
        self.send_order(what, ticket, value, text=text, fds=fds)
        return await self.await_reply(ticket)

    def send_order(self, what: int, ticket: int, value: int = 0, *, text: bytes = b"", fds: Sequence[int] = ()) -> None:
        """Send an order that has no reply."""
        if self.closed.is_set():
            raise HarnessError(SUPERVISOR_GONE, code="sandbox-lost")
        try:
            wire.send(self._socket, what, ticket, value, text=text, fds=fds)
        except BlockingIOError:
            raise SandboxFailed("the process that holds the sandbox does not listen") from None
        except OSError:
            self._end()
            raise HarnessError(SUPERVISOR_GONE, code="sandbox-lost") from None

    def listen(self) -> None:
        """Read the supervisor's messages."""
        while not self.closed.is_set():
            try:
                message = wire.receive(self._socket)
            except BlockingIOError:
                return
            if message is None:
                self._end()
                return
            pending = self._pending.get(message.ticket)
            if pending is None or message.what in wire.NOTICES:
                self._notice(message)
            elif not pending.done():
                pending.set_result(message)

    async def close(self) -> None:
        """End the supervisor and everything it holds."""
        if self.closed.is_set():
            return
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(KILL_S):
                await self.closed.wait()
        except TimeoutError:
            self._end()
            raise SandboxFailed("a sandbox could not be closed: its processes do not end") from None

    async def await_reply(self, ticket: int) -> SupervisorMessage:
        """Wait for the reply to an order; raise OSError if it was refused, HarnessError if the supervisor is gone."""
        # The reply may carry descriptors. If nobody waits for it any more they must be closed, or they would stay open
        # until Holdfast ends.
        pending = self._pending[ticket]
        try:
            async with asyncio.timeout(KILL_S):
                message = await pending
        except (TimeoutError, asyncio.CancelledError) as over:
            _drop(pending)
            if isinstance(over, asyncio.CancelledError):
                raise
            raise SandboxFailed(f"the process that holds the sandbox did not answer within {KILL_S:g} s") from None
        finally:
            self._pending.pop(ticket, None)
        if message.what == wire.BROKE:
            raise SandboxFailed(f"the sandbox could not be made: {message.text.decode('utf-8', 'replace')}")
        if message.what == wire.REFUSED:
            raise OSError(message.value, os.strerror(message.value))
        return message

    def _end(self) -> None:
        if self.closed.is_set():
            return
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self.closed.set()
        for pending in self._pending.values():
            if not pending.done():
                pending.set_exception(HarnessError(SUPERVISOR_GONE, code="sandbox-lost"))
                pending.exception()  # the caller may have left
        self._lost()


class SupervisedPrograms:
    """The programs that a supervisor runs, by the ticket of the order that started each.

    `line` is set once the supervisor is connected; `closing` is set before Holdfast closes it.
    """

    def __init__(self) -> None:
        self.line: SupervisorConnection
        self.closing = False
        self._running: dict[int, Program] = {}
        self._agents: set[int] = set()
        """Tickets of the agent's own programs; the others are Holdfast's commands."""

    async def start(
        self,
        name: str,
        order: int,
        stdio: Stdio,
        *,
        agents: bool,
        throwaway: bool = False,
        memory_end: MemoryEnd = lambda status, by_us: "",
    ) -> Program:
        """Start the program described by `order`, a descriptor that is closed here.

        Raises OSError if it cannot be executed.
        """
        ticket = self.line.make_ticket()
        program = Program(lambda number: self._signal(ticket, number), memory_end=memory_end)
        self._running[ticket] = program
        if agents:
            self._agents.add(ticket)
        try:
            await self.line.ask(wire.START, int(throwaway), ticket=ticket, fds=[order, *stdio])
        except OSError as refused:
            self._running.pop(ticket, None)
            raise OSError(refused.errno, refused.strerror, name) from None
        except BaseException:
            self._running.pop(ticket, None)
            with contextlib.suppress(HarnessError):
                self._signal(ticket, signal.SIGKILL)  # it may start nevertheless
            raise
        finally:
            os.close(order)
        return program

    async def kill_agents(self) -> int:
        """Kill the agent's programs and their children, and wait for their end; return how many were running."""
        running = [self._running[ticket] for ticket in self._agents & self._running.keys()]
        for program in running:
            program.kill()
        await await_all(program.wait_for_end(KILL_S) for program in running)
        return len(running)

    def pop_ended(self, ticket: int) -> Program | None:
        """Remove and return the program that has ended; None if nobody waits for it."""
        return self._running.pop(ticket, None)

    def end_all(self) -> None:
        """End all waits, because the supervisor and its programs are gone."""
        for program in self._running.values():
            program.finish(None, lost=not self.closing, note=SUPERVISOR_GONE)
        self._running.clear()

    def _signal(self, ticket: int, number: int) -> None:
        if not self.line.closed.is_set():
            self.line.send_order(wire.SIGNAL, ticket, number)


def _drop(pending: asyncio.Future[SupervisorMessage]) -> None:
    """Close the descriptors of a reply that nobody waits for any more."""
    if pending.done() and not pending.cancelled() and pending.exception() is None:
        for fd in pending.result().fds:
            os.close(fd)


async def await_connected(fd: int) -> socket.socket:
    """Wait until a started connection is established; return its socket, or raise OSError if it is refused."""
    connection, writable = socket.socket(fileno=fd), asyncio.Event()
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    loop.add_writer(connection, writable.set)
    try:
        await writable.wait()
        failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not failed and connection.getsockname() == connection.getpeername():
            failed = errno.ECONNREFUSED  # nothing listens: a connection to an ephemeral port can connect to itself
        if failed:
            raise OSError(failed, os.strerror(failed))
    except BaseException:
        loop.remove_writer(connection)
        connection.close()
        raise
    loop.remove_writer(connection)
    return connection
