"""Reads a server's output as it arrives, in bounded memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from holdfast.processes.pipes import DRAINS, Tail, read_now

LINE_LIMIT = 65_536
"""Maximum number of bytes of a line: enough to see what a statement does to which table."""


class LogLines:
    """Splits bytes into lines; a longer line is cut."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._pending = bytearray()

    def add(self, data: bytes) -> None:
        # A line may arrive in many pieces, and may be longer than memory allows. Its beginning is kept, which names the
        # statement and the table.
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._keep(part)
            self._take(bytes(self._pending))
            self._pending.clear()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._pending += part[: LINE_LIMIT - len(self._pending)]


class ServerLog:
    """The log of one server: stores its end, passes every line to `line`, and can wait for a text."""

    def __init__(self, fd: int, line: Callable[[bytes], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._tail = Tail()
        self._line = line
        self._lines = LogLines(self._handle_line)
        self._awaited = b""
        self._waiter = asyncio.Event()
        self._ended = asyncio.Event()
        self._closed = False
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self.drain, 1)

    @property
    def text(self) -> str:
        """The end of the output."""
        return self._tail.text

    @property
    def ended(self) -> bool:
        """Whether the log has ended: the server is gone."""
        return self._ended.is_set()

    async def wait_for_text(self, text: bytes) -> bool:
        """Wait for a line with this text; return False if the log ends first."""
        self._awaited = text
        if any(text in line for line in self._tail.text.encode().splitlines()):
            return True
        await self._waiter.wait()
        return not self._ended.is_set()

    async def wait_for_end(self, within_s: float) -> None:
        """Wait until the server is gone; raise TimeoutError if it is not."""
        try:
            async with asyncio.timeout(within_s):
                await self._ended.wait()
        except TimeoutError:
            # This process may have been stopped for all that time (Ctrl-Z), and the end may wait unread.
            self.drain()
            if not self.ended:
                raise

    def drain(self, reads: int = DRAINS) -> None:
        """Read what was printed so far."""
        for _ in range(reads):
            data = None if self._closed else read_now(self._fd)
            if data is None:
                return
            if not data:
                self._end()
                return
            self._tail.add(data)
            self._lines.add(data)

    def close(self) -> None:
        if not self._closed:
            self._end()
            self._closed = True
            os.close(self._fd)

    def _end(self) -> None:
        self._loop.remove_reader(self._fd)
        self._ended.set()
        self._waiter.set()

    def _handle_line(self, line: bytes) -> None:
        if self._awaited and self._awaited in line:
            self._waiter.set()
        if self._line is not None:
            self._line(line)
