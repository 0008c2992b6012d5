"""Values that are worth following from one text to another: numbers and ids in one spelling, and long words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from unicodedata import normalize

_KEY = re.compile(r"""(["'])[^"']{1,60}\1\s*:""")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_NUMBER = re.compile(r"(?<![\w.])(?<!\w-)(?:\d{1,3}(?:\.\d{3})+,\d+|\d[\d,]*(?:\.\d+)?)(?!\w|-\w)")
"""`1219.5`, `1,219.50`, and `1.219,50`, where a comma ends the integer; not the digits of `C-40417`."""
_COMMA_LAST = re.compile(r"[\d.]*\.[\d.]*,\d+")
_WORD = re.compile(r"[^\W_](?:[\w@./:=+-]*[^\W_])?")
_SEPARATOR = re.compile(r"[/:=]+")
_DIGITS, _ID, _PHRASE = 3, 5, 8
"""Shortest number, shortest word with a digit and shortest other word that two texts do not share by accident."""


def followed_values(text: str) -> dict[str, str]:
    """Return the values of a text in the spelling in which they are compared, each with its own spelling.

    No keys of JSON.
    """
    if "\\u" in text:
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    text = normalize("NFKC", _KEY.sub(" ", text))
    numbers = ((_plain(number), number) for number in _NUMBER.findall(text))
    values = {_normalize_number(plain): number for plain, number in numbers if _is_long(plain)}
    for word in _WORD.findall(_NUMBER.sub(" ", text)):
        # An id may be part of a path or follow its name: orders/c-40417, receipt:r-99310.
        for part in (word, *_SEPARATOR.split(word)):
            if len(part) >= (_ID if any(c.isdigit() for c in part) else _PHRASE):
                values[part.casefold().replace("-", "").replace("_", "")] = part
    return values


def _plain(number: str) -> str:
    if _COMMA_LAST.fullmatch(number):
        return number.replace(".", "").replace(",", ".")
    return number.replace(",", "")


def _normalize_number(number: str) -> str:
    # Decimal keeps 28 digits: longer ones, such as ids, are compared as they are written.
    return str(Decimal(number).normalize()) if len(number) <= 28 else number


def _is_long(number: str) -> bool:
    return sum(c.isdigit() for c in number) >= _DIGITS


def fingerprint(value: str, key: bytes = b"") -> str:
    """Return the digest of a value, for traffic whose content is not stored."""
    return blake2b(value.encode(), digest_size=6, key=key).hexdigest()


def fingerprints(values: Iterable[str]) -> tuple[str, ...]:
    """Return the digests of values, sorted."""
    return tuple(sorted(map(fingerprint, values)))
