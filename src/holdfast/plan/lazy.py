"""A sequence whose items are made when asked for: a plan of 100,000 trials keeps none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """The items at the positions `kept`, each made by `at`; a slice is lazy too.

    `walk` gives the same items in order, where that is cheaper than one by one.
    """

    __slots__ = ("_at", "_kept", "_walk")

    def __init__(
        self, at: Callable[[int], T], kept: Sequence[int], walk: Callable[[], Iterator[T]] | None = None
    ) -> None:
        self._at = at
        self._kept = kept
        self._walk = walk

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Lazy[T]: ...
    def __getitem__(self, index: int | slice) -> T | Lazy[T]:
        if isinstance(index, slice):
            return Lazy(self._at, self._kept[index])
        return self._at(self._kept[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._at, self._kept) if self._walk is None else self._walk()
