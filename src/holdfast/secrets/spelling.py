"""Recognises secrets and their encodings: plain, escaped for JSON, a URL or HTML, in hex, or inside base64."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from itertools import groupby
from urllib.parse import quote, quote_plus

SHORTEST_SECRET = 6
"""A shorter value would be masked where it means something else."""
TOO_SHORT = f"is shorter than {SHORTEST_SECRET} characters: it cannot be masked"
TOO_SHORT_HINT = "masking it would hide ordinary text; use a longer value, or write it literally"
KEY_SHAPED = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAIza[0-9A-Za-z_-]{30,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|(?i:\bbearer\s+)(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}"
)
"""Text that looks like a key."""
KEY_NAME = r"([\w-]*authorization|[\w-]*api[-_]?key|[\w-]*token|cookie)"
"""A header whose value grants access."""
_LITERAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
"""Characters that neither JSON nor a URL nor HTML escapes."""
_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_BACKSLASH = r"(?:\\|%(?:25){0,2}5[cC]|&#(?:92|[xX]5[cC]);)"
_ESCAPES = _BACKSLASH + "{1,15}"
"""Nested JSON doubles backslashes at each level. The bound keeps many backslashes cheap."""
_BEGUN = (0, 2, 3)
"""Base64 characters that a secret shares with its neighbours, by the bytes before it in its group of three."""


class SecretSpelling:
    """One encoding of a secret in all its variants: a pattern to find it, and a fast test that it is absent."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        # The longest run of characters that every encoding leaves alone must be in the text, however it is encoded.
        runs = ("".join(run) for literal, run in groupby(parts, key=_LITERAL.__contains__) if literal)
        self.core = max(runs, key=len, default="")
        """A text without this cannot contain the secret."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when first needed: compiling takes longer than searching most texts."""
        return re.compile("".join(self._parts))

    def is_in(self, text: str) -> bool:
        return self.core in text and self.pattern.search(text) is not None


def list_spellings(secret: str) -> Iterator[SecretSpelling]:
    """Yield every encoding that is searched for."""
    yield SecretSpelling(tuple(_list_char_patterns(secret)))
    yield from map(SecretSpelling, _list_hex_forms(secret))
    for coded in _list_base64_forms(secret):
        yield SecretSpelling([_build_digit_pattern(digit) for digit in coded])


def list_plain_spellings(secret: str) -> set[str]:
    """Return the usual encodings as plain texts, to recognise what a cut has left of a secret."""
    escaped = {json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
    in_url = {
        escape_url(secret, safe, errors="surrogateescape") for escape_url in (quote, quote_plus) for safe in ("", "/")
    }
    lower = {re.sub("%..", lambda match: match.group().lower(), text) for text in in_url}
    coded = {text.translate(to) for text in _list_base64_forms(secret) for to in ({}, {ord("+"): "-", ord("/"): "_"})}
    in_page = {escape(secret), escape(secret, quote=False)}
    return {secret, *_list_hex_forms(secret)} | escaped | in_url | in_page | lower | coded


def _list_hex_forms(secret: str) -> set[str]:
    """Return its hex digits, as SQL shows binary values, in both cases."""
    digits = secret.encode("utf-8", "surrogateescape").hex()
    return {digits, digits.upper()}


def _list_base64_forms(secret: str) -> Iterator[str]:
    """Yield its base64 for each of the three alignments, without the characters that it shares with its neighbours."""
    data = secret.encode("utf-8", "surrogateescape")
    for before, shared in enumerate(_BEGUN):
        # Base64 encodes three bytes as four characters, so the text depends on where the secret begins in its group.
        # The first and the last characters also encode neighbouring bytes and are left out.
        text = b64encode(bytes(before) + data).decode()
        yield text[shared : (before + len(data)) * 8 // 6]


def _list_char_patterns(secret: str) -> Iterator[str]:
    """Yield a pattern for each character.

    A run of backslashes has one pattern, or the search would try every way to divide it.
    """
    for char, run in groupby(secret):
        count = len(list(run))
        if char == "\\":
            yield f"{_BACKSLASH}{{{count},{16 * count}}}"
        else:
            yield from [_build_char_pattern(char)] * count


def _build_char_pattern(char: str) -> str:
    if char in _LITERAL:
        return char
    # A character may be escaped by any of several writers on its way, and by more than one of them. The alternatives
    # cover each character by itself, so a text that mixes them is found, too.
    patterns = [
        re.escape(char),
        _build_percent_pattern(char),
        _build_unicode_pattern(char),
        _build_entity_pattern(char),
    ]
    if char in "\"'/":
        patterns.append(f"{_ESCAPES}(?:{char}|{_build_percent_pattern(char)})")
    if char in _SHORT:
        patterns.append(_ESCAPES + _SHORT[char])
    if char == " ":
        patterns.append(r"\+")
    return f"(?:{'|'.join(patterns)})"


def _build_digit_pattern(digit: str) -> str:
    """Return a base64 character in both alphabets, possibly escaped by a URL or JSON."""
    other = {"+": "-", "/": "_"}.get(digit)
    return digit if other is None else f"(?:{_build_char_pattern(digit)}|{other})"


def _build_percent_pattern(char: str) -> str:
    """Return the character in a URL, also in a URL within a URL."""
    return "".join(
        f"%(?:25){{0,2}}{_build_hex_pattern(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogateescape")
    )


def _build_entity_pattern(char: str) -> str:
    """Return the character in HTML: an error page escapes `&`, `<`, `>` and quotes, some pages all but ASCII."""
    entity = escape(char)[1:-1] if char in '&<>"' else ""
    numbers = f"#0*{ord(char)}|#[xX]0*{_build_hex_pattern(f'{ord(char):x}')}"
    # A page within a page has `&amp;quot;`.
    return f"&(?:amp;){{0,2}}(?:{numbers}{'|apos' if char == chr(39) else ''}{entity and '|' + entity});"


def _build_unicode_pattern(char: str) -> str:
    r"""Return the character as `\u00e9`; Python also writes `\xe9` and `\U0001f600`."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"{_ESCAPES}u{_build_hex_pattern(units[at : at + 4])}" for at in range(0, len(units), 4))
    if len(units) > 4:
        return f"{escaped}|{_ESCAPES}U{_build_hex_pattern(f'{ord(char):08x}')}"
    return f"{escaped}|{_ESCAPES}x{_build_hex_pattern(units[2:])}" if units.startswith("00") else escaped


def _build_hex_pattern(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
