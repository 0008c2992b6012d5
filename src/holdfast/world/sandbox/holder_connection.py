"""Our ends of the lines to the host and to its holders."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.processes.leftovers import kill_group
from holdfast.processes.program import KILL_S
from holdfast.world.sandbox import wire
from holdfast.world.sandbox.wire import HolderMessage, Kind, SandboxLayout, StartOrder

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop()); from holdfast.world.sandbox.host import main; main()"
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
            await asyncio.wait_for(self.closed.wait(), KILL_S)
        except TimeoutError:
            self._end()
            raise HarnessError("a sandbox could not be closed: its processes do not end") from None

    async def reply(self, ticket: int) -> HolderMessage:
        """Waits for the reply to an order; OSError if it was refused, HarnessError if the holder is gone."""
        try:
            message = await asyncio.wait_for(self._asked[ticket], KILL_S)
        except TimeoutError:
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


class HostProcess:
    """The host of one backend. Close it after use."""

    def __init__(self, kind: Kind, uid: int = 0, gid: int = 0) -> None:
        self._control, theirs = wire.pair()
        self._control.settimeout(KILL_S)
        words = [str(theirs.fileno()), kind, str(uid), str(gid)]
        try:
            self._process = _spawn(words, theirs.fileno())
        except OSError as broken:
            self._control.close()
            raise HarnessError(f"the sandbox host could not be started: {broken}") from broken
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def owners(self) -> int:
        """What a sandbox host that was started as root says first: how files change their owner; -1 if they cannot."""
        message = wire.receive(self._control)
        if message is None:
            raise HarnessError("the sandbox host ended at once")
        return message.fds[0] if message.fds else -1

    def order(
        self,
        thing: SandboxLayout | StartOrder,
        fds: Sequence[int],
        notice: Callable[[HolderMessage], None],
        lost: Callable[[], None],
    ) -> HolderConnection:
        """Hands a layout or an order to the next holder; HarnessError if the host is gone."""
        ours, theirs = wire.pair()
        written = wire.written(thing)
        try:
            wire.send(self._control, wire.START, 0, fds=[theirs.fileno(), written, *fds])
        except OSError as broken:
            ours.close()
            raise HarnessError("the sandbox host is gone") from broken
        finally:
            theirs.close()
            os.close(written)
        return HolderConnection(ours, notice, lost)

    async def close(self) -> None:
        """Ends the host and all its holders."""
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, KILL_S)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _spawn(words: list[str], control: int) -> subprocess.Popen[bytes]:
    home = str(Path(__file__).parents[3])
    return subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-I", "-S", "-c", _PROGRAM, *words, home],
        pass_fds=[control],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={},
    )
