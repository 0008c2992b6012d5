"""Takes secrets out of bytes, files and what servers write, of any size, a window at a time."""

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
"""None; literals and names of SQL; rows of PostgreSQL's COPY; literals of MySQL's; JSON. A mask keeps the escapes."""
_WIDE = {2: "·", 3: "•", 4: "🔒"}
_DIGITS = 20
"""More than a number of 64 bits has."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
REWRITTEN = 64_000_000
"""Bytes of a file that is still rewritten."""
WINDOW = 1_000_000
"""Bytes that are looked at in one go."""
_LONGEST = 8
"""How many times as long as a secret one of its spellings may be."""
_TRIES = 32
_NO_END = "\0"
"""Beside a window's end that is none of the text's: there `mask` must not take a piece for a secret that was cut."""


class CannotMask(HoldfastError):
    """A secret is there in a form that cannot be taken out."""

    default_code = "secret-not-masked"


class Hidden:
    """Values that must not be seen. `mask` knows further spellings of them, in a text."""

    def __init__(self, values: Collection[str], mask: Callable[[str], str]) -> None:
        self._texts = {value for value in values if value}
        self.values = sorted((value.encode("utf-8", "surrogateescape") for value in self._texts), key=_longest)
        """The longest first: one may begin with another."""
        self._mask = mask

    @cached_property
    def _lap(self) -> int:
        """Bytes that two windows share, so that no spelling is between them."""
        return _LONGEST * max(map(len, self.values), default=0) + len(MASK)

    def text(self, text: str) -> str:
        """A text without them."""
        data = text.encode("utf-8", "surrogateescape")
        for form in disguises(self._texts, text=True):
            data = data.replace(form.found, MASK)
        return self._mask(data.decode("utf-8", "surrogateescape"))

    def plain(self, data: bytes) -> bytes:
        """Bytes without the values as they are."""
        for value in self.values:
            data = data.replace(value, MASK)
        return data

    def overwrite(self, data: mmap, *, text: bool) -> None:
        """Puts masks of the same length in the place of all forms that a server writes."""
        forms = disguises(self._texts, text=text)
        for start in range(0, len(data), WINDOW):
            seen = data[start : start + WINDOW + self._lap]
            for form in forms:
                if 0 <= seen.find(form.found) < WINDOW:  # the next window sees the longer ones there first
                    _overwrite(data, form, start)
                    seen = data[start : start + WINDOW + self._lap]

    def spelled_in(self, data: mmap) -> bool:
        """Whether a value, or a spelling that `mask` knows, is there."""
        for start in range(0, len(data), WINDOW):
            seen = data[start : start + WINDOW + self._lap]
            text = _NO_END + seen.decode("utf-8", "surrogateescape") + _NO_END
            if any(value in seen for value in self.values) or self._mask(text) != text:
                return True
        return False

    def masked(self, file: IO[bytes]) -> Iterator[bytes]:
        """A text, window by window, without the spellings that `mask` knows; CannotMask if there is no end to one."""
        rest, start = b"", ""
        while block := file.read(max(WINDOW, 4 * self._lap)):
            if rest:
                cut = self._cut(rest, block)
                yield self._without(rest[:cut], start, _NO_END)
                rest, start = rest[cut:], _NO_END
            rest += block
        yield self._without(rest, start, "")

    def _cut(self, data: bytes, following: bytes) -> int:
        """Where it may be cut: what is masked on both sides apart is what is masked in both together."""
        lap = self._lap
        end = len(data)
        data += following[:lap]
        for at in range(end, end - 2 * lap, -max(1, lap // _TRIES)):
            left, right = data[at - lap : at], data[at : at + lap]
            if right[:1] and right[0] & 0xC0 == 0x80:
                continue  # within a character
            parts = self._without(left, _NO_END, _NO_END) + self._without(right, _NO_END, _NO_END)
            if parts == self._without(left + right, _NO_END, _NO_END):
                return at
        raise CannotMask("a secret is everywhere in it")

    def _without(self, data: bytes, before: str, after: str) -> bytes:
        text = self._mask(before + data.decode("utf-8", "surrogateescape") + after)
        return text[len(before) : len(text) - len(after)].encode("utf-8", "surrogateescape")


def _overwrite(data: mmap, form: DisguisedSecret, start: int) -> None:
    """One form, wherever it begins in one window."""
    size = len(form.found)
    at = data.find(form.found, start, start + WINDOW + size - 1)
    while at >= 0:
        data[at : at + size] = form.mask
        at = data.find(form.found, at + size, start + WINDOW + size - 1)


def _longest(value: bytes) -> tuple[int, bytes]:
    return -len(value), value


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


def mask_files(folder: Path, hidden: Hidden) -> Iterator[str]:
    """Takes secrets out of every file and every name; a file that cannot be rewritten goes, and that is told."""
    for at, folders, names in os.walk(folder, topdown=False) if hidden.values else ():
        for path in (_renamed(Path(at, name), hidden) for name in (*names, *folders)):
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                continue
            why = _rewritten(path, hidden)
            if why:
                path.unlink()
                yield f"{path.relative_to(folder)} is left out: {why}"


def mask_dump(path: Path, hidden: Hidden, *, text: bool) -> None:
    """Takes secrets out of what a server wrote, so that another can still read it; CannotMask if one would stay.

    A mask is as long as its secret: in a file that is no text, sizes stand before what they count.
    """
    if not path.stat().st_size or not hidden.values:
        return
    with path.open("r+b") as file, mmap(file.fileno(), 0) as data:
        hidden.overwrite(data, text=text)
        if not hidden.spelled_in(data):
            return
    if not text:
        raise CannotMask("a secret stands in it in a form that cannot be masked")
    masked = path.with_name(f"{path.name}.masked")
    try:
        masked.touch(mode=0o600)
        with path.open("rb") as script, masked.open("wb") as to:
            to.writelines(hidden.masked(script))
        masked.replace(path)
    finally:
        masked.unlink(missing_ok=True)


def _rewritten(path: Path, hidden: Hidden) -> str:
    """Rewrites a file without secrets; why not, if that cannot be done."""
    if path.stat().st_size > REWRITTEN:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as seen:
            return "it is large, and a secret is in it" if hidden.spelled_in(seen) else ""
    before = path.read_bytes()
    try:
        data = b"".join(hidden.masked(BytesIO(hidden.plain(before))))
    except CannotMask as refused:
        return str(refused)
    if data != before:
        mode = path.stat().st_mode
        path.chmod(0o600)
        path.write_bytes(data)
        path.chmod(mode)
    return ""


def _renamed(path: Path, hidden: Hidden) -> Path:
    """Where it is now: a name with a secret in it is masked, a link that leads to such a name goes."""
    if path.is_symlink() and any(value in os.fsencode(os.readlink(path)) for value in hidden.values):
        path.unlink()
        return path
    target = path.with_name(os.fsdecode(hidden.plain(os.fsencode(path.name))))
    return path if target == path else path.replace(target)
