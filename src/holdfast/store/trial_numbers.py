"""Numbers for the ids of trials: 12 bytes of memory each, where a dict takes a hundred."""

from __future__ import annotations

from array import array

_DIGITS = "0123456789abcdef"
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
        if key is None:
            found = self._odd.setdefault(id, self._count)
            if found < self._count:
                return found
        else:
            at = self._slot(key)
            if self._keys[at]:
                return self._numbers[at]
            self._keys[at], self._numbers[at] = key, self._count
        self._count += 1
        if 2 * self._count > self._mask:
            self._grow()
        return self._count - 1

    def find(self, id: str) -> int | None:
        """The id's number, None if it has none."""
        key = _key(id)
        if key is None:
            return self._odd.get(id)
        keys, mask = self._keys, self._mask  # as in _slot: this is asked twice a trial
        at = key & mask
        while (found := keys[at]) and found != key:
            at = (at + 1) & mask
        return self._numbers[at] if found else None

    def _slot(self, key: int) -> int:
        """Where the key lies, or would: ids are digests, so their last bits are as good as a hash."""
        keys, mask = self._keys, self._mask
        at = key & mask
        while (found := keys[at]) and found != key:
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
    return int(id, 16) + 1 if len(id) == 12 and not id.strip(_DIGITS) else None
