"""PostgreSQL's answers: which question each one belongs to, and what they say of the transaction."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable

from holdfast.planes.tcp.transaction_state import TransactionState

FIX = b"!"
"""A query of our own: of its answer the client gets only ReadyForQuery, in place of the one that it waits for."""
_LONG = 65_536
"""A longer message passes unread."""
_ASKING = b"PBDCESQF" + FIX
_READY = (b"Q", b"S", b"F", FIX)
"""Questions that end with ReadyForQuery."""
_ENDS = {b"1": b"P", b"2": b"B", b"3": b"C", b"T": b"D", b"n": b"D", b"C": b"E", b"I": b"E", b"s": b"E"}
"""An answer, and the question of the extended protocol that it ends."""
_UNREAD = frozenset(b"DdSKRAv")
"""Rows and the like: they say nothing of questions and transactions."""
_OURS = (b"C", b"E", b"N")
"""What a query of ours brings about and the client did not ask for."""
_QUESTIONS_KEPT = 1_000_000
_length = struct.Struct("!I").unpack_from


class PostgresReplies:
    """Reads what the server says. What it keeps is for the client."""

    def __init__(self, transactions: TransactionState) -> None:
        self.opaque = False
        self.tag = ""
        """What the last command that was answered did, as `INSERT 0 1`."""
        self.attending = False
        """A message is on its way of which the server does not know yet: what it says is about the time before."""
        self._transactions = transactions
        self._waiting: deque[bytes] = deque()
        self._heard: Callable[[bytes], None] | None = None
        self._skipping = False
        self._copying = False
        self._part = b""
        self._passing = 0
        """Bytes of a message that pass unread."""
        self._moved = asyncio.Event()
        self._over = False

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def expect(self, kind: bytes) -> None:
        """A message of this kind goes to the server."""
        if kind not in _ASKING or len(self._waiting) > _QUESTIONS_KEPT:
            return
        if self._skipping and kind != b"S":  # after an error the server is deaf until Sync
            return
        self._skipping = self._copying = False
        self._waiting.append(kind)

    def expect_byte(self, heard: Callable[[bytes], None]) -> None:
        """The next byte is an answer by itself: whether there is TLS. b"" if none comes."""
        self._heard = heard

    async def answered(self) -> None:
        """Waits until every question is answered, or the server wants data; ConnectionResetError if it is gone."""
        while self._waiting and not self._copying:
            if self._over:
                raise ConnectionResetError("the server is gone")
            self._moved.clear()
            await self._moved.wait()

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._moved.set()
        if self._heard is not None:
            self._heard(b"")

    def scan(self, data: bytes) -> bytes:
        """What of it is for the client; of what we look at, a message that is not whole yet waits here."""
        if self._heard is not None:
            heard, self._heard = self._heard, None
            heard(data[:1])
            return data[:1] + self.scan(data[1:]) if data[1:] else data
        if self.opaque:
            return data
        if self._part:
            data, self._part = self._part + data, b""
        return self._messages(data)

    def _messages(self, data: bytes) -> bytes:
        """Rows are most of what comes: one costs no call."""
        at, size, start = self._passing, len(data), 0
        kept: list[bytes] = []
        while at + 5 <= size:
            step = 1 + _length(data, at + 1)[0]
            if data[at] not in _UNREAD and step <= _LONG:
                if at + step > size:
                    break
                if not self._reply(data[at : at + 1], data[at + 5 : at + step]):
                    kept.append(data[start:at])
                    start = at + step
            at += step
        self._passing = max(0, at - size)
        self._part = data[at:]
        if not start and not self._part:
            return data
        return b"".join((*kept, data[start : min(at, size)]))

    def _reply(self, kind: bytes, body: bytes) -> bool:
        waiting = self._waiting
        first = waiting[0] if waiting else b""
        if kind == b"C":
            self.tag = body.rstrip(b"\0").decode("utf-8", "replace")
        if kind == b"Z":
            self._ready(body)
        elif kind in _ENDS and first == _ENDS[kind]:
            waiting.popleft()
        elif kind == b"E":
            self.tag = _told(body)
            self._failed(first)
        elif kind in (b"G", b"W"):
            self._copying = True
        self._moved.set()
        return not (first == FIX and kind in _OURS)

    def _ready(self, body: bytes) -> None:
        if self._waiting and self._waiting[0] in _READY:
            self._waiting.popleft()
        self._copying = False
        if not self._waiting and not self.attending:
            self._transactions.told(open=body != b"I", failed=body == b"E")

    def _failed(self, first: bytes) -> None:
        """An error in the extended protocol: what follows up to Sync gets no answer."""
        if not first or first in _READY:
            return
        while self._waiting and self._waiting[0] != b"S":
            self._waiting.popleft()
        self._skipping = not self._waiting


def _told(body: bytes) -> str:
    """The code and the message of an error."""
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    return f"error {fields.get(b'C', '')}: {fields.get(b'M', '')}"
