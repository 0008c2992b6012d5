"""How a secret stands in what a server writes: as it is, escaped for a script, in hex, or as a number. Pure."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MASK = b"[masked]"
_BACKSLASH = {"\\": "\\\\"}
_LINES = {"\n": "\\n", "\r": "\\r"}
_ESCAPES: tuple[dict[str, str], ...] = (
    {},
    {"'": "''"},
    {'"': '""'},
    {"`": "``"},
    _BACKSLASH,
    {**_BACKSLASH, "'": "''"},
    {**_BACKSLASH, **_LINES, "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v"},
    {**_BACKSLASH, **_LINES, "\0": "\\0", "\x1a": "\\Z", "'": "\\'", '"': '\\"'},
    {**_BACKSLASH, **_LINES, "\t": "\\t", "\b": "\\b", "\f": "\\f", '"': '\\"'},
)
"""None; literals and names of SQL; rows of PostgreSQL's COPY; literals of MySQL's; JSON. A mask keeps the escapes."""
_WIDE = {2: "·", 3: "•", 4: "🔒"}
_DIGITS = 20
"""More than a number of 64 bits has."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class DisguisedSecret(NamedTuple):
    """Bytes that give a secret away, and as many that take their place."""

    found: bytes
    mask: bytes


def disguises(secrets: Iterable[str], *, text: bool) -> list[DisguisedSecret]:
    """Every form that is looked for, the longest first: a secret may begin with another."""
    forms = {form for secret in secrets for form in (*_written(secret), *(() if text else _numbers(secret)))}
    return sorted(forms, key=lambda form: (-len(form.found), form))


def _masked(secret: str) -> str:
    """As many characters, and as many bytes. A number stays one: a column or a JSON value may take nothing else."""
    if _NUMBER.fullmatch(secret):
        return re.sub("[0-9]", "1", secret)
    plain = MASK.decode().ljust(len(secret), "*")
    return "".join(_WIDE.get(len(_bytes(char)), mask) for char, mask in zip(secret, plain, strict=False))


def _written(secret: str) -> Iterator[DisguisedSecret]:
    masked = _masked(secret)
    for table in _ESCAPES:
        pairs = [(table.get(char, char), table.get(char, mask)) for char, mask in zip(secret, masked, strict=True)]
        yield DisguisedSecret(*(_bytes("".join(side)) for side in zip(*pairs, strict=True)))
    in_hex = DisguisedSecret(*(_bytes(one).hex().encode() for one in (secret, masked)))
    yield in_hex
    yield DisguisedSecret(in_hex.found.upper(), in_hex.mask.upper())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _numbers(secret: str) -> Iterator[DisguisedSecret]:
    """As Redis keeps them: in as few bytes as it can, with a mark before them where they are few."""
    if len(secret) > _DIGITS or not _NUMBER.fullmatch(secret):
        return
    mask = _masked(secret)
    yield DisguisedSecret(struct.pack("<d", float(secret)), struct.pack("<d", float(mask)))
    if "." in secret or str(int(secret)) != secret:
        return  # Redis keeps it as it is written
    for width, before, after in _WIDTHS:
        if -(1 << 8 * width - 1) <= int(secret) < 1 << 8 * width - 1:
            yield DisguisedSecret(
                *(before + int(one).to_bytes(width, "little", signed=True) + after for one in (secret, mask))
            )


_WIDTHS = (
    (2, b"\xc1", b""),
    (2, b"\xf1", b"\x03"),
    (2, b"\xc0", b""),
    (3, b"\xf2", b"\x04"),
    (3, b"\xf0", b""),
    (4, b"", b""),
    (8, b"", b""),
)
"""Of a string, in a list pack, in a zip list; then without a mark, as in a set of numbers."""
