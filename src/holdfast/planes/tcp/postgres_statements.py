"""What a client of PostgreSQL's asks for: by SQL text, or by the name of what it has prepared."""

from __future__ import annotations

from holdfast.planes.tcp.postgres_wire import words
from holdfast.sqltext.transaction import TransactionStatement, transaction_statements

_NAMES_KEPT = 5_000
"""Prepared statements and portals of one connection that are known."""
_UNKNOWN = TransactionStatement("read", "")


class PostgresStatements:
    """The statements of one connection."""

    def __init__(self) -> None:
        self._prepared: dict[str, TransactionStatement] = {}
        self._portals: dict[str, TransactionStatement] = {}

    def said(self, kind: bytes, body: bytes) -> tuple[TransactionStatement, ...]:
        """What a message makes the server do; remembers what it only names."""
        if kind == b"Q":
            return transaction_statements(body.rstrip(b"\0").decode("utf-8", "replace"), "postgres")
        if kind == b"E":
            (portal,) = words(body, 1)
            return (self._portals.get(portal, _UNKNOWN),)
        if kind == b"P":
            name, text = words(body, 2)
            found = transaction_statements(text, "postgres")
            _keep(self._prepared, name, found[0] if found else _UNKNOWN)
        elif kind == b"B":
            portal, name = words(body, 2)
            _keep(self._portals, portal, self._prepared.get(name, _UNKNOWN))
        return ()


def _keep(names: dict[str, TransactionStatement], name: str, statement: TransactionStatement) -> None:
    if len(names) >= _NAMES_KEPT and name not in names:
        names.pop(next(iter(names)))
    names[name] = statement
