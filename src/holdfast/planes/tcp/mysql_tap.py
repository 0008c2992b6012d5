"""MySQL heard in passing, where no fault waits for its transactions: they are counted, and writes are told."""

from __future__ import annotations

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.client_frames import LIMIT
from holdfast.planes.tcp.mysql_replies import MysqlReplies
from holdfast.planes.tcp.mysql_statements import MysqlStatements
from holdfast.planes.tcp.transaction_state import TransactionState
from holdfast.planes.tcp.wire_reader import Faulty


class MysqlTap:
    """One connection, heard as MysqlReader reads it."""

    def __init__(self, faults: Faulty) -> None:
        self._faults = faults
        self._transactions = TransactionState(faults.begin, faults.end)
        self._replies = MysqlReplies(self._transactions)
        self._statements = MysqlStatements()
        self._begun = False
        self._part = b""
        self._passing = 0
        """Bytes of a packet that pass unheard."""

    def client_said(self, data: bytes) -> None:
        if self._replies.opaque:
            return
        if self._part:
            data, self._part = self._part + data, b""
        at, size = self._passing, len(data)
        while at + wire.HEAD <= size and not self._replies.opaque:
            end = at + wire.HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            looked_at = min(end, at + wire.HEAD + LIMIT)
            if looked_at > size:
                break
            self._packet(data[at + 3], data[at + wire.HEAD : looked_at])
            at = end
        self._passing = max(0, at - size)
        self._part = data[at:]

    def server_said(self, data: bytes) -> None:
        self._replies.scan(data)

    def server_ended(self) -> None:
        self._replies.end()
        self._transactions.told(open=False)

    def _packet(self, number: int, payload: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._hello(payload)
        elif number == 0:  # else more of a command, or of what the server asked for
            self._command(payload)

    def _hello(self, payload: bytes) -> None:
        tls = wire.wants_tls(payload)
        if tls or wire.compresses(payload):
            self._faults.unreadable("it is encrypted" if tls else "it is compressed")
            self._replies.opaque = True

    def _command(self, payload: bytes) -> None:
        match payload[0] if payload else 0:
            case wire.QUERY | wire.EXECUTE:
                self._work(payload)
            case wire.PREPARE:
                self._replies.asked(wire.PREPARE, self._statements.prepare(payload))
            case wire.CLOSE:
                self._statements.close(payload)
            case command:
                self._replies.asked(command)
                if command in (wire.CHANGE_USER, wire.RESET):
                    self._transactions.reset()

    def _work(self, payload: bytes) -> None:
        said = self._statements.said(payload)
        self._transactions.meet(said)
        self._replies.asked(wire.QUERY)
        for statement in said:
            if statement.kind == "write":
                self._faults.wrote(statement)
        self._transactions.passed()
