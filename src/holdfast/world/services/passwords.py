"""Passwords as servers store them, so that none is ever sent in clear or written to a file. Pure."""

from __future__ import annotations

import hashlib
import hmac
import stringprep
import unicodedata
from base64 import b64encode

_FORBIDDEN = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)
ITERATIONS = 4096
"""PostgreSQL's own number."""


def scram(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    """What PostgreSQL keeps of a password (RFC 5803)."""
    salted = hashlib.pbkdf2_hmac("sha256", _normal(password).encode(), salt, iterations)
    stored = hashlib.sha256(_signed(salted, b"Client Key")).digest()
    keys = f"{b64encode(stored).decode()}:{b64encode(_signed(salted, b'Server Key')).decode()}"
    return f"SCRAM-SHA-256${iterations}:{b64encode(salt).decode()}${keys}"


def _normal(password: str) -> str:
    """As a client sends it (RFC 4013): one text for all ways to write the same signs; a forbidden sign stays."""
    kept = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    normal = unicodedata.normalize("NFKC", kept)
    right = [stringprep.in_table_d1(c) for c in normal]
    mixed = any(right) and not (right[0] and right[-1] and not any(map(stringprep.in_table_d2, normal)))
    return password if not normal or mixed or any(table(c) for c in normal for table in _FORBIDDEN) else normal


def native(password: str) -> str:
    """What MariaDB and MySQL keep of a password (mysql_native_password)."""
    if not password:
        return ""
    once = hashlib.sha1(password.encode()).digest()  # noqa: S324  # the server's own format
    return "*" + hashlib.sha1(once).hexdigest().upper()  # noqa: S324


def _signed(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")
