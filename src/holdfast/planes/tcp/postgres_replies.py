"""PostgreSQL's answers: the question that each belongs to, and the transaction state that they report."""

from __future__ import annotations

import struct
from collections.abc import Callable

from holdfast.planes.tcp.transaction_state import TransactionState
from holdfast.planes.tcp.wire_reader import WireReplies

FIX = b"!"
"""A query from Holdfast: the client receives only its ReadyForQuery, instead of the one that it waits for."""
_LONG = 65_536
"""A longer message passes unread."""
_ASKING = b"PBDCESQF" + FIX
_READY = (b"Q", b"S", b"F", FIX)
"""Questions that end with ReadyForQuery."""
_ENDS = {b"1": b"P", b"2": b"B", b"3": b"C", b"T": b"D", b"n": b"D", b"C": b"E", b"I": b"E", b"s": b"E"}
"""An answer, and the question of the extended protocol that it ends."""
_UNREAD = frozenset(b"DdSKRAv")
"""Rows and the like: they contain no information about questions and transactions."""
_OURS = (b"C", b"E", b"N")
"""Answers to Holdfast's query that the client did not request."""
_QUESTIONS_KEPT = 1_000_000
_length = struct.Struct("!I").unpack_from


class PostgresReplies(WireReplies):
    """Reads PostgreSQL's answers."""

    def __init__(self, transactions: TransactionState) -> None:
        super().__init__(transactions)
        self.attending = False
        """Whether a message is in transit that the server has not read yet: its state is then out of date."""
        self._heard: Callable[[bytes], None] | None = None
        self._skipping = False

    def expect(self, kind: bytes) -> None:
        """Record that a message of this kind goes to the server."""
        if kind not in _ASKING or len(self._waiting) > _QUESTIONS_KEPT:
            return
        if self._skipping and kind != b"S":  # after an error the server ignores messages until Sync
            return
        self._skipping = self._copying = False
        self._waiting.append(kind)

    def expect_byte(self, heard: Callable[[bytes], None]) -> None:
        """Pass the next byte to `heard`: a complete answer that says whether TLS is available; b"" if none comes."""
        self._heard = heard

    def end(self) -> None:
        super().end()
        if self._heard is not None:
            self._heard(b"")

    def scan(self, data: bytes) -> bytes:
        if self._heard is not None:
            heard, self._heard = self._heard, None
            heard(data[:1])
            return data[:1] + self.scan(data[1:]) if data[1:] else data
        return super().scan(data)

    def _scan_messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        at, size, start = self._passing, len(data), 0
        pieces: list[bytes] = []
        while at + 5 <= size:
            step = 1 + _length(data, at + 1)[0]
            if data[at] not in _UNREAD and step <= _LONG:
                if at + step > size:
                    break
                if not self._read_reply(data[at : at + 1], data[at + 5 : at + step]):
                    pieces.append(data[start:at])
                    start = at + step
            at += step
        return at, start, pieces

    def _read_reply(self, kind: bytes, body: bytes) -> bool:
        waiting = self._waiting
        first = waiting[0] if waiting else b""
        if kind == b"C":
            self.last = body.rstrip(b"\0").decode("utf-8", "replace")
        if kind == b"Z":
            if self._waiting and self._waiting[0] in _READY:
                self._waiting.popleft()
            self._copying = False
            if not self._waiting and not self.attending:
                self._transactions.set_server_state(open=body != b"I", failed=body == b"E")
        elif kind in _ENDS and first == _ENDS[kind]:
            waiting.popleft()
        elif kind == b"E":
            self.last = _format_error(body)
            self._handle_error(first)
        elif kind in (b"G", b"W"):
            self._copying = True
        self._moved.set()
        return not (first == FIX and kind in _OURS)

    def _handle_error(self, first: bytes) -> None:
        """Handle an error in the extended protocol: messages up to Sync get no answer."""
        if not first or first in _READY:
            return
        while self._waiting and self._waiting[0] != b"S":
            self._waiting.popleft()
        self._skipping = not self._waiting


def _format_error(body: bytes) -> str:
    """Return the code and the message of an error."""
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    return f"error {fields.get(b'C', '')}: {fields.get(b'M', '')}"
