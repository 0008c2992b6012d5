"""Trial ids in little memory: a run of a million trials must not fill it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

DIGITS = 12
_HEX = frozenset("0123456789abcdef")
_NEAR = 32
"""How far from the last match to look first: the files of one run have nearly the same order."""
_NUMBER_BITS = 32


class IdTable:
    """Ids, numbered from 0 in the order they were added: about 20 bytes each, where a dict needs 150.

    If an id is added twice, the last number counts. A text that is not a trial id gets a number, but is never found.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._keys = array("Q", map(_parse_key, ids))
        self._next = 0
        both = sorted((key << _NUMBER_BITS) | number for number, key in enumerate(self._keys))
        last = (1 << _NUMBER_BITS) - 1
        self._sorted = array("Q", (one >> _NUMBER_BITS for one in both))
        self._numbers = array("L", (one & last for one in both))
        del both
        self.distinct = sum(map(int.__ne__, self._sorted, self._sorted[1:])) + 1 if self._sorted else 0

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, id: str) -> int | None:
        """Return the id's number; None if it was not added."""
        key = _parse_key(id)
        if key == _NONE:
            return None
        if self.distinct == len(self._keys):  # otherwise a near one may not be the last
            try:
                self._next = self._keys.index(key, self._next, self._next + _NEAR) + 1
                return self._next - 1
            except ValueError:
                pass
        return self._search(key)

    def _search(self, key: int) -> int | None:
        at = bisect_left(self._sorted, key + 1) - 1
        if at < 0 or self._sorted[at] != key:
            return None
        number = self._numbers[at]
        self._next = number + 1
        return number


_NONE = 1 << (4 * DIGITS)


def _parse_key(id: str) -> int:
    return int(id, 16) if len(id) == DIGITS and _HEX.issuperset(id) else _NONE
