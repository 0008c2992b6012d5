"""MySQL's answers: the first packet of each one, which says how it went and what it left of the transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.client_frames import sift
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
        self._left = 0
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
        kept, self._part = sift(self._part + data, self._next)
        return kept

    def _next(self, data: bytes, at: int) -> tuple[int, bool]:
        """How many bytes belong together, and whether the client gets them; 0: more is needed to tell."""
        there = len(data) - at
        if self._left:
            step = min(self._left, there)
            self._left -= step
            return step, True
        if there < wire.HEAD:
            return 0, True
        size = wire.HEAD + int.from_bytes(data[at : at + 3], "little")
        first = data[at + 3] == 1 and bool(self._waiting)
        if first and there < min(size, _LOOKED_AT):
            return 0, True
        keep = self._reply(data[at + wire.HEAD : at + min(size, _LOOKED_AT)]) if first else True
        self._left = max(0, size - there)
        return min(size, there), keep

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
