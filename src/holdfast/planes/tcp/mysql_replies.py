"""MySQL's answers: the first packet of each one, which says how it went and what it left of the transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.transaction_state import TransactionState

_LOOKED_AT = 1_024
"""Bytes of a first packet that are looked at."""


class _PendingCommand(NamedTuple):
    command: int
    named: Callable[[int], None] | None = None
    """Told the number of a prepared statement."""
    ours: bool = False
    """Not the client's: the answer is not for it."""


class MysqlReplies:
    """Reads what the server says. What it keeps is for the client."""

    def __init__(self, transactions: TransactionState) -> None:
        self.opaque = False
        self.told = ""
        """What the last answer was."""
        self._transactions = transactions
        self._waiting: deque[_PendingCommand] = deque()
        self._part = b""
        self._passing = 0
        """Bytes of a packet that pass unread."""
        self._moved = asyncio.Event()
        self._over = False

    def asked(self, command: int, named: Callable[[int], None] | None = None, *, ours: bool = False) -> None:
        """A command goes to the server."""
        if command not in wire.SILENT:
            self._waiting.append(_PendingCommand(command, named, ours))

    async def answered(self) -> None:
        """Waits until every command has its answer begun; ConnectionResetError if the server is gone."""
        while self._waiting:
            if self._over:
                raise ConnectionResetError("the server is gone")
            self._moved.clear()
            await self._moved.wait()

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._moved.set()

    def scan(self, data: bytes) -> bytes:
        """What of it is for the client; the head of a packet that is not whole yet waits here."""
        if self.opaque:
            return data
        if self._part:
            data, self._part = self._part + data, b""
        return self._packets(data)

    def _packets(self, data: bytes) -> bytes:
        """Rows are most of what comes: one costs no call."""
        at, size, start = self._passing, len(data), 0
        kept: list[bytes] = []
        while at + wire.HEAD <= size:
            step = wire.HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            if data[at + 3] == 1 and self._waiting:
                looked_at = at + min(step, _LOOKED_AT)
                if looked_at > size:
                    break
                if not self._reply(data[at + wire.HEAD : looked_at]):
                    kept.append(data[start:at])
                    start = at + step
            at += step
        self._passing = max(0, at - size)
        self._part = data[at:]
        if not start and not self._part:
            return data
        return b"".join((*kept, data[start : min(at, size)]))

    def _reply(self, payload: bytes) -> bool:
        """The first packet of an answer."""
        asked = self._waiting.popleft()
        self.told = wire.told(payload)
        if asked.named is not None and payload[:1] == b"\0":
            asked.named(int.from_bytes(payload[1:5], "little"))
        elif asked.command == wire.QUERY and not self._waiting and not asked.ours:
            state = wire.status(payload)
            if state is not None:
                self._transactions.autocommit = bool(state & wire.AUTOCOMMIT)
                self._transactions.told(open=bool(state & wire.IN_TRANSACTION))
        self._moved.set()
        return not asked.ours
