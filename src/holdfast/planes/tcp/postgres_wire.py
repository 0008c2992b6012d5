"""PostgreSQL's messages: what we read of them, and those we write ourselves."""

from __future__ import annotations

import struct

CANCEL, SSL, GSS = 80877102, 80877103, 80877104
"""What a connection may begin with instead of a start-up message."""
STARTUP = 10_000
"""The longest start-up message that PostgreSQL takes."""
FLUSH = b"H\0\0\0\x04"
ROLLBACK = "ROLLBACK"

CODES = {
    "serialization_failure": ("40001", "could not serialize access due to concurrent update"),
    "lock_timeout": ("55P03", "canceling statement due to lock timeout"),
    "read_only": ("25006", "cannot execute {verb} in a read-only transaction"),
    "too_many_connections": ("53300", "sorry, too many clients already"),
}


def error(kind: str, verb: str = "", *, severity: str = "ERROR") -> bytes:
    """An ErrorResponse as the server would write it."""
    code, text = CODES[kind]
    fields = (("S", severity), ("V", severity), ("C", code), ("M", text.format(verb=verb)))
    body = b"".join(f"{name}{value}\0".encode() for name, value in fields) + b"\0"
    return b"E" + struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    """A simple Query."""
    text = sql.encode() + b"\0"
    return b"Q" + struct.pack("!i", len(text) + 4) + text


def raising(kind: str) -> str:
    """SQL that fails on the server just as the client is told: its transaction is really in that state."""
    code = CODES[kind][0]
    return f"DO $holdfast$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $holdfast$"


def words(body: bytes, count: int) -> list[str]:
    """The first zero-ended strings of a message."""
    return [part.decode("utf-8", "replace") for part in body.split(b"\0", count)[:count]]
