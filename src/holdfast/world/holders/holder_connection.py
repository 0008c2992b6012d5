"""Our end of the line to a holder, and the connections that it opens for us inside."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Sequence

from holdfast.errors import HarnessError
from holdfast.processes.program import KILL_S
from holdfast.world.holders import wire
from holdfast.world.holders.wire import HolderMessage

GONE = "the process that held the sandbox is gone"


class HolderConnection:
    """One line to a holder: orders and their replies, and notices in between."""

    def __init__(self, ours: socket.socket, notice: Callable[[HolderMessage], None], lost: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ours = ours
        self._notice = notice
        self._lost = lost
        self._tickets = 0
        self._asked: dict[int, asyncio.Future[HolderMessage]] = {}
        self.closed = asyncio.Event()
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self.listen)

    def fileno(self) -> int:
        return self._ours.fileno()

    def ticket(self) -> int:
        """A number for the next order."""
        self._tickets += 1
        return self._tickets

    def expect(self, ticket: int) -> None:
        """A reply will come to that number: say so before it can."""
        self._asked[ticket] = self._loop.create_future()

    async def ask(
        self, what: int, value: int = 0, *, ticket: int = 0, text: bytes = b"", fds: Sequence[int] = ()
    ) -> HolderMessage:
        """Gives an order and waits for its reply; OSError if it is refused, HarnessError if the holder is gone."""
        ticket = ticket or self.ticket()
        self.expect(ticket)
        self.tell(what, ticket, value, text=text, fds=fds)
        return await self.reply(ticket)

    def tell(self, what: int, ticket: int, value: int = 0, *, text: bytes = b"", fds: Sequence[int] = ()) -> None:
        """Gives an order that has no reply."""
        if self.closed.is_set():
            raise HarnessError(GONE)
        try:
            wire.send(self._ours, what, ticket, value, text=text, fds=fds)
        except BlockingIOError:
            raise HarnessError("the process that holds the sandbox does not listen") from None
        except OSError:
            self._end()
            raise HarnessError(GONE) from None

    def listen(self) -> None:
        """Takes what the holder has told."""
        while not self.closed.is_set():
            try:
                message = wire.receive(self._ours)
            except BlockingIOError:
                return
            if message is None:
                self._end()
                return
            asked = self._asked.get(message.ticket)
            if asked is None or message.what in wire.UNASKED:
                self._notice(message)
            elif not asked.done():
                asked.set_result(message)

    async def close(self) -> None:
        """Ends the holder and all that it holds."""
        if self.closed.is_set():
            return
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(KILL_S):
                await self.closed.wait()
        except TimeoutError:
            self._end()
            raise HarnessError("a sandbox could not be closed: its processes do not end") from None

    async def reply(self, ticket: int) -> HolderMessage:
        """Waits for the reply to an order; OSError if it was refused, HarnessError if the holder is gone."""
        asked = self._asked[ticket]
        try:
            async with asyncio.timeout(KILL_S):
                message = await asked
        except (TimeoutError, asyncio.CancelledError) as over:
            _drop(asked)
            if isinstance(over, asyncio.CancelledError):
                raise
            raise HarnessError(f"the process that holds the sandbox did not answer within {KILL_S:g} s") from None
        finally:
            self._asked.pop(ticket, None)
        if message.what == wire.BROKE:
            raise HarnessError(f"the sandbox could not be made: {message.text.decode('utf-8', 'replace')}")
        if message.what == wire.REFUSED:
            raise OSError(message.value, os.strerror(message.value))
        return message

    def _end(self) -> None:
        if self.closed.is_set():
            return
        self._loop.remove_reader(self._ours.fileno())
        self._ours.close()
        self.closed.set()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(HarnessError(GONE))
                asked.exception()  # whoever asked may have left
        self._lost()


def _drop(asked: asyncio.Future[HolderMessage]) -> None:
    """A reply that nobody waits for any more: its descriptors are closed."""
    if asked.done() and not asked.cancelled() and asked.exception() is None:
        for fd in asked.result().fds:
            os.close(fd)


async def connected(fd: int) -> socket.socket:
    """The socket of a connection that has begun, once it is there; OSError if it is refused."""
    way = socket.socket(fileno=fd)
    way.setblocking(False)
    try:
        await _writable(way)
        failed = way.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not failed and way.getsockname() == way.getpeername():
            failed = errno.ECONNREFUSED  # nothing listens: a port of the system's own range can meet itself
        if failed:
            raise OSError(failed, os.strerror(failed))
    except BaseException:
        way.close()
        raise
    return way


async def _writable(way: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    loop.add_writer(way, _settle, done)
    try:
        await done
    finally:
        loop.remove_writer(way)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
