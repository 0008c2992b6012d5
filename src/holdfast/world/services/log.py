"""Reads a server's output as it arrives, in bounded memory, and the statements in the log of a database."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct, field

from holdfast.processes.pipes import DRAINS, Tail, read_now
from holdfast.sqltext.writes import Write
from holdfast.world.services.write_tally import WriteTally

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
        *complete, unfinished = data.split(b"\n")
        for part in complete:
            self._keep(part)
            self._take(bytes(self._pending))
            self._pending.clear()
        self._keep(unfinished)

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
            if not data:
                if data is not None:
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


_SESSIONS = 1_000
"""Maximum number of agent sessions that a log tracks."""


class AgentSession(Struct):
    """What earlier statements of a session of the agent tell about its later ones."""

    database: str = ""
    """MySQL: the current database."""
    last: list[Write] = field(default_factory=list)
    """PostgreSQL: the writes of the last statement, which may turn out to have failed."""
    temporary: set[str] = field(default_factory=set)
    """The names of temporary tables, because later statements do not say that they are temporary."""


class StatementLog(ABC):
    """Reads a server's log line by line and adds up the writes of sessions that are not Holdfast's."""

    entry: ClassVar[re.Pattern[bytes]]
    """Matches the start of an entry; its group `session` is the number of the session."""
    continuation: ClassVar[re.Pattern[bytes]]
    """Matches a line that belongs to the entry before it; its group `more` is the text that the line adds."""

    def __init__(self) -> None:
        self.tally = WriteTally()
        self._own_sessions: set[int] = set()
        self._pending = bytearray()
        self._sessions: OrderedDict[int, AgentSession] = OrderedDict()

    def add_own_session(self, number: int) -> None:
        """Register a session of Holdfast."""
        self._own_sessions.add(number)

    def add_line(self, line: bytes) -> None:
        more = self.continuation.match(line)
        if more is not None and self._pending:
            self._pending += (b"\n" + more["more"])[: LINE_LIMIT - len(self._pending)]
            return
        self.flush()
        self._pending += line

    def flush(self) -> None:
        """Process the entry, which is complete."""
        entry = self.entry.match(bytes(self._pending))
        self._pending.clear()
        if entry is not None and int(entry["session"]) not in self._own_sessions:
            self.read_entry(self._get_session(int(entry["session"])), entry)

    @abstractmethod
    def read_entry(self, session: AgentSession, entry: re.Match[bytes]) -> None:
        """Add up the statements of a session of the agent."""

    def _get_session(self, number: int) -> AgentSession:
        # An agent may open sessions forever. Those that it has not used for longest are forgotten, and a new one knows
        # nothing of a session's temporary tables or last statement.
        session = self._sessions.get(number) or self._sessions.setdefault(number, AgentSession())
        self._sessions.move_to_end(number)
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return session
