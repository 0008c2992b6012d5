"""A Delivery carried out: which bytes go out when."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from holdfast.model.delivery import Delivery

TICK_S = 0.05
"""Under a bandwidth, what may go in so long goes at once."""


class Pacing:
    """Splits the bytes of one reply as its delivery says."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._rng = Random(delivery.slices.seed if delivery.slices else 0)
        self._sent = 0

    @property
    def cut_off(self) -> bool:
        """So much was sent that the connection closes."""
        limit = self._delivery.limit
        return limit is not None and self._sent >= limit

    def pieces(self, data: bytes) -> Iterator[tuple[bytes, float]]:
        """The next bytes, piece by piece, each with the wait after it in ms."""
        limit = self._delivery.limit
        if limit is not None:
            data = data[: max(0, limit - self._sent)]
        at = 0
        while at < len(data):
            piece = data[at : at + self._size()]
            at += len(piece)
            self._sent += len(piece)
            yield piece, self._wait(len(piece))

    def _size(self) -> int:
        slices, rate = self._delivery.slices, self._delivery.rate
        size = 65_536 if rate is None else max(1, int(rate * TICK_S))
        if slices is None:
            return size
        varied = slices.average + self._rng.randint(-slices.variation, slices.variation)
        return min(size, max(1, varied))

    def _wait(self, size: int) -> float:
        slices, rate = self._delivery.slices, self._delivery.rate
        return (slices.delay_ms if slices else 0.0) + (size / rate * 1000 if rate else 0.0)
