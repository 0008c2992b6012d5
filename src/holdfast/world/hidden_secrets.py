"""Takes secrets out of bytes of any size, a window at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from mmap import mmap
from typing import IO

from holdfast.errors import HoldfastError
from holdfast.world.disguises import MASK, DisguisedSecret, disguises

WINDOW = 1_000_000
"""Bytes that are looked at in one go."""
_LONGEST = 8
"""How many times as long as a secret one of its spellings may be."""
_TRIES = 32
_NO_END = "\0"
"""Beside a window's end that is none of the text's: there `mask` must not take a piece for a secret that was cut."""


class CannotMask(HoldfastError):
    """A secret is there in a form that cannot be taken out."""


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
