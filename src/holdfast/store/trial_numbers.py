"""Numbers for the ids of trials: 12 bytes of memory each, where a dict takes a hundred."""

from __future__ import annotations

from array import array

_DIGITS = 12
_START = 1 << 12
"""Slots of an empty table; it doubles before it is half full."""


class TrialNumbers:
    """Counts ids as they come; an id that came before keeps its number. Ids that we do not write are kept as text."""

    def __init__(self) -> None:
        self._count = 0
        self._odd: dict[str, int] = {}
        self._clear(_START)

    def __len__(self) -> int:
        return self._count

    def add(self, id: str) -> int:
        """The id's number, a new one if it has none."""
        key = _key(id)
        at = 0 if key is None else self._slot(key)
        found = self._odd.get(id) if key is None else self._held(at)
        if found is not None:
            return found
        if key is None:
            self._odd[id] = self._count
        else:
            self._keys[at], self._numbers[at] = key, self._count
        self._count += 1
        if 2 * self._count > self._mask:
            self._grow()
        return self._count - 1

    def find(self, id: str) -> int | None:
        """The id's number, None if it has none."""
        key = _key(id)
        return self._odd.get(id) if key is None else self._held(self._slot(key))

    def _held(self, slot: int) -> int | None:
        return self._numbers[slot] if self._keys[slot] else None

    def _slot(self, key: int) -> int:
        """Where the key lies, or would: ids are digests, so their last bits are as good as a hash."""
        keys, mask = self._keys, self._mask
        at = key & mask
        while keys[at] and keys[at] != key:
            at = (at + 1) & mask
        return at

    def _clear(self, slots: int) -> None:
        self._mask = slots - 1
        self._keys = array("Q", (0,)) * slots
        self._numbers = array("I", (0,)) * slots

    def _grow(self) -> None:
        keys, numbers = self._keys, self._numbers
        self._clear(2 * len(keys))
        for key, number in zip(keys, numbers, strict=True):
            if key:
                at = self._slot(key)
                self._keys[at], self._numbers[at] = key, number


def _key(id: str) -> int | None:
    """The id as a number that is not 0; None if it is not as we write them."""
    if len(id) != _DIGITS:
        return None
    try:
        number = int(id, 16)
    except ValueError:
        return None
    return number + 1 if number >= 0 and f"{number:0{_DIGITS}x}" == id else None
