"""What a client of MySQL's asks for: by SQL text, or by the number of what it has prepared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.sqltext.transaction import TransactionStatement, transaction_statements

_PREPARED_KEPT = 5_000
_LAST = 0xFFFFFFFF
"""What MariaDB's clients call the statement that was prepared last."""
_UNKNOWN = TransactionStatement("read", "")


class MysqlStatements:
    """The statements of one connection."""

    def __init__(self) -> None:
        self._prepared: dict[int, TransactionStatement] = {}
        self._last = _UNKNOWN

    def said(self, payload: bytes) -> tuple[TransactionStatement, ...]:
        """What a QUERY or an EXECUTE makes the server do."""
        if payload[0] == wire.QUERY:
            return transaction_statements(wire.text_of(payload), "mysql")
        number = int.from_bytes(payload[1:5], "little")
        return (self._last if number == _LAST else self._prepared.get(number, _UNKNOWN),)

    def prepare(self, payload: bytes) -> Callable[[int], None]:
        """Remembers a statement; gives what is to be told its number."""
        found = transaction_statements(wire.text_of(payload), "mysql")
        self._last = found[0] if found else _UNKNOWN
        return partial(self._number, self._last)

    def close(self, payload: bytes) -> None:
        self._prepared.pop(int.from_bytes(payload[1:5], "little"), None)

    def _number(self, statement: TransactionStatement, number: int) -> None:
        if len(self._prepared) < _PREPARED_KEPT:
            self._prepared[number] = statement
