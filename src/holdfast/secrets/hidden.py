"""Removes secrets from bytes, files and server data of any size, one window at a time."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, NamedTuple

from holdfast.errors import HoldfastError
from holdfast.model.observation import MASK as TEXT_MASK

MASK = TEXT_MASK.encode()
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
"""Escaping: none; SQL literals and names; rows of PostgreSQL's COPY; MySQL literals; JSON. A mask keeps the escapes."""
_WIDE = {2: "·", 3: "•", 4: "🔒"}
_DIGITS = 20
"""More digits than a 64-bit number has."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
REWRITTEN = 64_000_000
"""Maximum size of a file that is still rewritten, in bytes."""
WINDOW = 1_000_000
"""Bytes that are examined together."""
_LONGEST = 8
"""Maximum ratio of an encoded form's length to the secret's."""
_TRIES = 32
_NO_END = "\0"
"""Distance from a window's end that is not the end of the text: there `mask` must not treat a piece as a cut secret."""


class CannotMask(HoldfastError):
    """A secret occurs in a form that cannot be removed."""

    default_code = "secret-not-masked"


class HiddenValues:
    """Values that must not be visible. `mask` recognises further forms of them in a text."""

    def __init__(self, values: Collection[str], mask: Callable[[str], str]) -> None:
        self._texts = set(filter(None, values))
        self.values = sorted(map(_encode, self._texts), key=lambda value: (-len(value), value))
        """Longest first, because one may begin with another."""
        self._mask = mask

    @cached_property
    def _lap(self) -> int:
        """Overlap of two windows in bytes, to keep any form from falling between them."""
        return _LONGEST * max(map(len, self.values), default=0) + len(MASK)

    def mask_text(self, text: str) -> str:
        """Return a text without the secrets."""
        data = text.encode("utf-8", "surrogateescape")
        for form in list_secret_forms(self._texts, text=True):
            data = data.replace(form.data, MASK)
        return self._mask(data.decode("utf-8", "surrogateescape"))

    def mask_values(self, data: bytes) -> bytes:
        """Return the bytes without the literal values."""
        for value in self.values:
            data = data.replace(value, MASK)
        return data

    def overwrite(self, data: mmap, *, text: bool) -> None:
        """Replace all forms that a server writes with masks of the same length."""
        # Windows overlap by the longest possible form, so no form is split between two. A window masks only what begins
        # in its first part: the rest is the beginning of the next window, which sees longer forms there first.
        forms = list_secret_forms(self._texts, text=text)
        for start in range(0, len(data), WINDOW):
            window = data[start : start + WINDOW + self._lap]
            for form in forms:
                if 0 <= window.find(form.data) < WINDOW:  # the next window sees the longer ones there first
                    _overwrite(data, form, start)
                    window = data[start : start + WINDOW + self._lap]

    def has_secret(self, data: mmap) -> bool:
        """Return whether a value, or a form that `mask` recognises, occurs."""
        for start in range(0, len(data), WINDOW):
            window = data[start : start + WINDOW + self._lap]
            text = _NO_END + window.decode("utf-8", "surrogateescape") + _NO_END
            if any(value in window for value in self.values) or self._mask(text) != text:
                return True
        return False

    def mask_stream(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield a text window by window, without the forms that `mask` recognises; raise CannotMask if it cannot."""
        # A window can be masked by itself only if no secret crosses its border. So the border is moved to a place where
        # masking both sides separately gives the same text, and _NO_END keeps `mask` from treating the border as a cut.
        rest, start = b"", ""
        while block := file.read(max(WINDOW, 4 * self._lap)):
            if rest:
                cut = self._find_cut(rest, block)
                yield self._remove(rest[:cut], start, _NO_END)
                rest, start = rest[cut:], _NO_END
            rest += block
        yield self._remove(rest, start, "")

    def _find_cut(self, data: bytes, following: bytes) -> int:
        """Return a safe place to cut: masking both sides separately gives the same result as masking them together."""
        lap = self._lap
        end = len(data)
        data += following[:lap]
        # Tries places before the end until one is safe. Only a text that is full of secrets has none.
        for at in range(end, end - 2 * lap, -max(1, lap // _TRIES)):
            left, right = data[at - lap : at], data[at : at + lap]
            if right[:1] and right[0] & 0xC0 == 0x80:
                continue  # within a character
            parts = self._remove(left, _NO_END, _NO_END) + self._remove(right, _NO_END, _NO_END)
            if parts == self._remove(left + right, _NO_END, _NO_END):
                return at
        raise CannotMask("a secret appears throughout it")

    def _remove(self, data: bytes, before: str, after: str) -> bytes:
        text = self._mask(before + data.decode("utf-8", "surrogateescape") + after)
        return text[len(before) : len(text) - len(after)].encode("utf-8", "surrogateescape")


def _overwrite(data: mmap, form: SecretForm, start: int) -> None:
    """Mask one form wherever it begins in one window."""
    size = len(form.data)
    at = data.find(form.data, start, start + WINDOW + size - 1)
    while at >= 0:
        data[at : at + size] = form.mask
        at = data.find(form.data, at + size, start + WINDOW + size - 1)


class SecretForm(NamedTuple):
    """Bytes that reveal a secret, and a replacement of the same length."""

    data: bytes
    mask: bytes


def list_secret_forms(secrets: Iterable[str], *, text: bool) -> list[SecretForm]:
    """Return every form to search for, longest first, because a secret may begin with another."""
    forms = {
        form
        for secret in secrets
        for form in (*_list_written_forms(secret), *(() if text else _list_number_forms(secret)))
    }
    return sorted(forms, key=lambda form: (-len(form.data), form))


def _make_mask(secret: str) -> str:
    """Return a mask with as many characters and bytes.

    A number stays a number, because a column or a JSON value may require one.
    """
    if _NUMBER.fullmatch(secret):
        return re.sub("[0-9]", "1", secret)
    plain = MASK.decode().ljust(len(secret), "*")
    return "".join(_WIDE.get(len(_encode(char)), mask) for char, mask in zip(secret, plain, strict=False))


def _list_written_forms(secret: str) -> Iterator[SecretForm]:
    masked = _make_mask(secret)
    # An escape doubles characters of the secret and of its mask alike, so both keep the same length.
    for table in _ESCAPES:
        pairs = [(table.get(char, char), table.get(char, mask)) for char, mask in zip(secret, masked, strict=True)]
        yield SecretForm(*(_encode("".join(side)) for side in zip(*pairs, strict=True)))
    in_hex = SecretForm(*(_encode(one).hex().encode() for one in (secret, masked)))
    yield in_hex
    yield SecretForm(in_hex.data.upper(), in_hex.mask.upper())


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _list_number_forms(secret: str) -> Iterator[SecretForm]:
    """Yield the forms in which Redis stores numbers: in as few bytes as possible, with a marker for short ones."""
    if len(secret) > _DIGITS or not _NUMBER.fullmatch(secret):
        return
    mask = _make_mask(secret)
    yield SecretForm(struct.pack("<d", float(secret)), struct.pack("<d", float(mask)))
    if "." in secret or str(int(secret)) != secret:
        return  # Redis stores it as text
    for width, before, after in _WIDTHS:
        if -(1 << 8 * width - 1) <= int(secret) < 1 << 8 * width - 1:
            yield SecretForm(
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
"""Bytes, prefix and suffix of a number in a string, a list pack and a zip list; then without a marker, as in a set."""


def mask_files(folder: Path, hidden: HiddenValues) -> Iterator[str]:
    """Remove secrets from every file and file name; a file that cannot be rewritten is deleted and reported."""
    for at, folders, names in os.walk(folder, topdown=False) if hidden.values else ():
        for path in (_rename(Path(at, name), hidden) for name in (*names, *folders)):
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                continue
            why = _rewrite(path, hidden)
            if why:
                path.unlink()
                yield f"{path.relative_to(folder)} is left out: {why}"


def mask_dump(path: Path, hidden: HiddenValues, *, text: bool) -> None:
    """Remove secrets from a server's files, which another server can still read.

    Raise CannotMask if one would remain. A mask is as long as its secret, because binary files store sizes before
    their data.
    """
    if not path.stat().st_size or not hidden.values:
        return
    with path.open("r+b") as file, mmap(file.fileno(), 0) as data:
        hidden.overwrite(data, text=text)
        # Overwriting knows the forms that servers write. Any other form that `mask` still recognises can be replaced in
        # a script, where lengths do not matter, but not in a binary file.
        if not hidden.has_secret(data):
            return
    if not text:
        raise CannotMask("it contains a secret in a form that cannot be masked")
    masked = path.with_name(f"{path.name}.masked")
    try:
        masked.touch(mode=0o600)
        with path.open("rb") as script, masked.open("wb") as to:
            to.writelines(hidden.mask_stream(script))
        masked.replace(path)
    finally:
        masked.unlink(missing_ok=True)


def _rewrite(path: Path, hidden: HiddenValues) -> str:
    """Rewrite a file without secrets; return the reason if that is impossible."""
    if path.stat().st_size > REWRITTEN:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return "it is large, and a secret is in it" if hidden.has_secret(content) else ""
    before = path.read_bytes()
    try:
        data = b"".join(hidden.mask_stream(BytesIO(hidden.mask_values(before))))
    except CannotMask as refused:
        return str(refused)
    if data != before:
        mode = path.stat().st_mode
        path.chmod(0o600)
        path.write_bytes(data)
        path.chmod(mode)
    return ""


def _rename(path: Path, hidden: HiddenValues) -> Path:
    """Return the new path: a name with a secret is masked, and a link to such a name is deleted."""
    if path.is_symlink() and any(value in os.fsencode(os.readlink(path)) for value in hidden.values):
        path.unlink()
        return path
    target = path.with_name(os.fsdecode(hidden.mask_values(os.fsencode(path.name))))
    return path if target == path else path.replace(target)
