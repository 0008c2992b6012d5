"""PostgreSQL heard in passing, where no fault waits for its transactions: they are counted, and writes are told."""

from __future__ import annotations

import struct

from holdfast.planes.tcp.client_frames import LIMIT
from holdfast.planes.tcp.postgres_replies import PostgresReplies
from holdfast.planes.tcp.postgres_statements import PostgresStatements
from holdfast.planes.tcp.postgres_wire import CANCEL, GSS, SSL, STARTUP
from holdfast.planes.tcp.transaction_state import TransactionState
from holdfast.planes.tcp.wire_reader import Faulty

_LOOKED_AT = frozenset(b"QESPB")
_length = struct.Struct("!I").unpack_from


class PostgresTap:
    """One connection, heard as PostgresReader reads it."""

    def __init__(self, faults: Faulty) -> None:
        self._faults = faults
        self._transactions = TransactionState(faults.begin, faults.end)
        self._replies = PostgresReplies(self._transactions)
        self._statements = PostgresStatements()
        self._hears = self._begins
        self._part = b""
        self._passing = 0
        """Bytes of a message that pass unheard."""
        self._asked_for_tls = False

    def client_said(self, data: bytes) -> None:
        if self._part:
            data, self._part = self._part + data, b""
        self._hears(data)

    def server_said(self, data: bytes) -> None:
        self._replies.scan(data)

    def server_ended(self) -> None:
        self._replies.end()
        self._transactions.told(open=False)

    # -- how a connection begins ----------------------------------------------------------------
    def _begins(self, data: bytes) -> None:
        if len(data) < 4 or self._asked_for_tls:
            self._part = data
            return
        length = _length(data)[0]
        if not 8 <= length <= STARTUP:
            self._give_up("it does not begin as PostgreSQL's")
        elif len(data) < length:
            self._part = data
        else:
            self._begun(_length(data, 4)[0], data[length:])

    def _begun(self, code: int, rest: bytes) -> None:
        if code == CANCEL:
            self._give_up("")
            return
        if code in (SSL, GSS):
            self._asked_for_tls = True
            self._part = rest
            self._replies.expect_byte(self._answered)
            return
        self._hears = self._messages
        if rest:
            self._messages(rest)

    def _answered(self, byte: bytes) -> None:
        """Whether the server speaks TLS."""
        self._asked_for_tls = False
        if byte != b"N":
            self._give_up("it is encrypted")
        elif self._part:
            self.client_said(b"")

    def _give_up(self, why: str) -> None:
        """What follows cannot be read."""
        self._hears = _nothing
        self._part = b""
        self._replies.opaque = True
        if why:
            self._faults.unreadable(why)

    # -- what it asks for -----------------------------------------------------------------------
    def _messages(self, data: bytes) -> None:
        at, size = self._passing, len(data)
        while at + 5 <= size:
            end = at + 1 + _length(data, at + 1)[0]
            looked_at = min(end, at + 5 + LIMIT)
            kind = data[at : at + 1]
            if data[at] in _LOOKED_AT:
                if looked_at > size:
                    break
                self._one(kind, data[at + 5 : looked_at])
            else:
                self._replies.expect(kind)
            at = end
        self._passing = max(0, at - size)
        self._part = data[at:]

    def _one(self, kind: bytes, body: bytes) -> None:
        said = self._statements.said(kind, body)
        if kind == b"S":
            self._transactions.sync()
        elif said:
            self._transactions.meet(said, commits=kind == b"Q")
        self._replies.expect(kind)
        for statement in said:
            if statement.kind == "write":
                self._faults.wrote(statement)
        if kind in b"QS":
            self._transactions.passed()


def _nothing(data: bytes) -> None:
    """What cannot be read."""
