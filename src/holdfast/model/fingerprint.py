"""Fingerprints of texts that Holdfast did not write: what is stable between trials, and the values to follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b, blake2s
from unicodedata import normalize

READ = 2_000
"""Characters of a text that are read."""
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_ID = (
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b"
    r"|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b|\b[a-z]{2,12}[_-](?=\w*\d)\w{4,64}\b"
)
# Alternating letters and digits, as in ULIDs and tokens. A word with an underscore may be a name (utf8mb4_general_ci),
# unless it has capitals.
_MIXED = r"\b(?=[\w-]{8,64}\b)(?=[A-Za-z0-9]+\b|[\w-]*[A-Z])[A-Za-z_-]*\d+[A-Za-z_-]+\d+[A-Za-z_-]+[\w-]*"
# A value with a label. After a colon prose may follow ("token: expired"), so there the value must not look like a word.
_LABELLED = (
    r"\b([\w-]*(?:id|token|nonce|session|cursor|hash|digest|uuid|trace))"
    r"(?:=['\"]?[\w+/.-]{4,}|: ?['\"]?(?:(?=[\w+/-]*\d)[\w+/-]{4,}|[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{4,}\b))=*['\"]?"
)
_PLACE = r"(?<![\w/.])/(?:tmp|var|private|home|Users|root|run|dev/shm)(?:/[^\s/'\"`:,;()]+)*/([^\s/'\"`:,;()]+)"
# One quoted word is a name (KeyError: 'total'); several are an example of what someone said.
_QUOTED = r"(?<!\w)(['\"`])((?=[^'\"`]*\s).{0,400}?)\1(?!\w)"
_STATUS_IN_QUOTES = re.compile(r"[45]\d\d\b(?= [A-Z])")
# A number after one of these words distinguishes causes: a status, an exit code, the port of a service.
_NUMBER = (
    r"((?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
    r"|\b(?:status|code|errno|signal|error|sqlstate|http(?:/[\d.]+)?|exited with|exit)(?: is)?[ :=]{1,3}-?\d+"
    r"|\b(?:returned|got|answered|received|gave|(?:responded|replied|failed) with|response) ?[\[(]?[45]\d\d\b"
    r"(?! of\b| \w?s\b)"
    r"|[(\[][45]\d\d[)\]]|\b[45]\d\d(?= (?-i:[A-Z]))"
    r"|\bport[ :=]{1,3}\d{1,4}\b|\b\w*(?:error|exception): [45]\d\d\b)|(?<!\w)\d(?:[\d.,:]*\d)?"
)


def _shorten_quote(match: re.Match[str]) -> str:
    """Drop a quoted phrase but keep the status codes in it: `'401 Unauthorized'`."""
    return "'…" + "".join(f"({status})" for status in _STATUS_IN_QUOTES.findall(match[2])) + "'"


@lru_cache(4_096)
def compute_fingerprint(text: str) -> str:
    """Digest the text without times, ids, temporary folders, quoted phrases and numbers that do not name a kind.

    It is a digest because the masker would not recognise a secret that lost only its digits.
    """
    # The order matters: times first, because their parts look like numbers, and labelled values before ids, because the
    # label shows that a plain word is a value. Numbers come last, when only those outside of ids are left.
    text = re.sub(_TIME, "#", text[:READ])
    text = re.sub(_LABELLED, r"\1 #", text)
    text = re.sub(_QUOTED, _shorten_quote, text, flags=re.DOTALL)
    text = re.sub(_PLACE, r"…/\1", text)
    text = re.sub(_MIXED, "#", text)
    text = re.sub(_ID, "#", text, flags=re.IGNORECASE)
    text = re.sub(_NUMBER, lambda match: match[1] or "#", text, flags=re.IGNORECASE)
    text = re.sub(r"\b([a-z_]{2,})\d{3,}\b", r"\1#", text)  # such as order8812
    text = " ".join(text.split())
    return blake2s(text.encode("utf-8", "replace"), digest_size=8).hexdigest() if text else ""


_KEY = re.compile(r"""(["'])[^"']{1,60}\1\s*:""")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_AMOUNT = re.compile(r"(?<![\w.])(?<!\w-)(?:\d{1,3}(?:\.\d{3})+,\d+|\d[\d,]*(?:\.\d+)?)(?!\w|-\w)")
"""`1219.5`, `1,219.50`, and `1.219,50`, where a comma ends the integer; not the digits of `C-40417`."""
_COMMA_LAST = re.compile(r"[\d.]*\.[\d.]*,\d+")
_WORD = re.compile(r"[^\W_](?:[\w@./:=+-]*[^\W_])?")
_SEPARATOR = re.compile(r"[/:=]+")
_SHORTEST_AMOUNT, _SHORTEST_ID, _SHORTEST_PHRASE = 3, 5, 8
"""Shortest number, shortest word with a digit and shortest other word that two texts do not share by accident."""


def followed_values(text: str) -> dict[str, str]:
    """Return the values of a text in the spelling in which they are compared, each with its own spelling.

    No keys of JSON.
    """
    # One value has many spellings: `1,219.50` in prose, `1219.5` in JSON. Values are followed from one text to another
    # by a normal form, and shown as they were written.
    if "\\u" in text:
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    text = normalize("NFKC", _KEY.sub(" ", text))
    numbers = ((_plain(number), number) for number in _AMOUNT.findall(text))
    values = {_normalize_number(plain): number for plain, number in numbers if _is_long(plain)}
    for word in _WORD.findall(_AMOUNT.sub(" ", text)):
        # An id may be part of a path or follow its name: orders/c-40417, receipt:r-99310.
        for part in (word, *_SEPARATOR.split(word)):
            if len(part) >= (_SHORTEST_ID if any(c.isdigit() for c in part) else _SHORTEST_PHRASE):
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
    return sum(c.isdigit() for c in number) >= _SHORTEST_AMOUNT


def fingerprint(value: str, key: bytes = b"") -> str:
    """Return the digest of a value, for traffic whose content is not stored."""
    return blake2b(value.encode(), digest_size=6, key=key).hexdigest()


def fingerprints(values: Iterable[str]) -> tuple[str, ...]:
    """Return the digests of values, sorted."""
    return tuple(sorted(map(fingerprint, values)))
