"""MySQL's packets: reading and writing."""

from __future__ import annotations

import struct

HEAD = 4

QUIT, QUERY, CHANGE_USER, PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET = 0x01, 0x03, 0x11, 0x16, 0x17, 0x18, 0x19, 0x1F
SILENT = (QUIT, LONG_DATA, CLOSE)
"""Commands without an answer."""

_COMPRESS, _TLS, _ZSTD = 1 << 5, 1 << 11, 1 << 26
IN_TRANSACTION, AUTOCOMMIT = 1, 2

CODES = {
    "serialization_failure": (1213, "40001", "Deadlock found when trying to get lock; try restarting transaction"),
    "lock_timeout": (1205, "HY000", "Lock wait timeout exceeded; try restarting transaction"),
    "read_only": (
        1290,
        "HY000",
        "The MariaDB server is running with the --read-only option so it cannot execute this statement",
    ),
}


def build_packet(payload: bytes, number: int) -> bytes:
    """Return a packet with its head."""
    return struct.pack("<I", len(payload))[:3] + bytes((number,)) + payload


def build_error(kind: str) -> bytes:
    """Return the server's rejection of a command."""
    code, state, text = CODES[kind]
    return build_packet(b"\xff" + struct.pack("<H", code) + b"#" + state.encode() + text.encode(), 1)


def build_too_many_error() -> bytes:
    """Build the error that a full server sends instead of a greeting; it has no SQL state yet."""
    return build_packet(b"\xff" + struct.pack("<H", 1040) + b"Too many connections", 0)


def build_query(sql: str) -> bytes:
    """Return a command from Holdfast."""
    return build_packet(bytes((QUERY,)) + sql.encode(), 0)


def wants_tls(hello: bytes) -> bool:
    """Return whether the client's first packet only requests TLS."""
    return len(hello) == 32 and bool(int.from_bytes(hello[:4], "little") & _TLS)


def uses_compression(hello: bytes) -> bool:
    """Return whether the connection is compressed after the client's first packet."""
    return bool(int.from_bytes(hello[:4], "little") & (_COMPRESS | _ZSTD))


def read_sql(payload: bytes) -> str:
    """Return the SQL of a query; newer clients put an empty list of attributes before it."""
    return payload[1:].lstrip(b"\0\1").decode("utf-8", "replace")


def read_status(payload: bytes) -> int | None:
    """Return the server's state, if this is an OK packet."""
    if payload[:1] != b"\0":
        return None
    at = _skip_number(payload, _skip_number(payload, 1))
    raw = payload[at : at + 2]
    return int.from_bytes(raw, "little") if len(raw) == 2 else None


def describe_answer(payload: bytes) -> str:
    """Return a short description of an answer."""
    if payload[:1] == b"\xff":
        code = int.from_bytes(payload[1:3], "little")
        return f"error {code}: {payload[9:].decode('utf-8', 'replace')}"
    return "OK" if payload[:1] == b"\0" else "rows"


def _skip_number(payload: bytes, at: int) -> int:
    """Return where a length-encoded number ends."""
    first = payload[at] if at < len(payload) else 0
    return at + {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(first, 1)
