"""Carries out a Delivery: decides which bytes are sent when."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from holdfast.model.delivery import Delivery, DeliveryPart

TICK_S = 0.05
"""Under a bandwidth limit, the bytes that fit into this time are sent together."""
NOTICEABLE_MS = 1.0
"""A bandwidth limit that delays a reply by less than this is ignored: clocks and schedulers cause as much."""


class PacedDelivery:
    """Splits the bytes of one reply according to its delivery."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._rng = Random(delivery.slices.seed if delivery.slices else 0)
        self.sent = 0
        """Bytes sent so far."""

    @property
    def is_cut_off(self) -> bool:
        """Whether enough was sent to close the connection."""
        limit = self._delivery.limit
        return limit is not None and self.sent >= limit

    def split_pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield the next bytes in pieces, each with the wait before it in ms."""
        limit, slices, rate = self._delivery.limit, self._delivery.slices, self._delivery.rate
        if limit is not None:
            data = data[: max(0, limit - self.sent)]
        at = 0
        while at < len(data):
            piece = data[at : at + self.choose_size()]
            at += len(piece)
            pause_ms = slices.delay_ms if slices and self.sent else 0.0
            yield pause_ms + (len(piece) / rate * 1000 if rate else 0.0), piece
            self.sent += len(piece)

    def choose_size(self) -> int:
        """Return the maximum size of the next piece."""
        # A bandwidth is simulated by pieces of one tick: each waits for the time that its bytes take at this rate.
        slices, rate = self._delivery.slices, self._delivery.rate
        size = 65_536 if rate is None else max(1, int(rate * TICK_S))
        if slices is None:
            return size
        varied = slices.average + self._rng.randint(-slices.variation, slices.variation)
        return min(size, max(1, varied))


def drop_ineffective(delivery: Delivery, size: int) -> tuple[Delivery, list[DeliveryPart]]:
    """Return the delivery for a body of this size, and the parts of it that have no effect."""
    idle: list[DeliveryPart] = []
    if delivery.limit is not None and delivery.limit >= size:
        idle.append("limit")
        delivery = replace(delivery, limit=None)
    sent = size if delivery.limit is None else delivery.limit
    if delivery.rate is not None and sent / delivery.rate * 1000 < NOTICEABLE_MS:
        idle.append("rate")
        delivery = replace(delivery, rate=None)
    if delivery.slices is not None and sent <= PacedDelivery(Delivery(slices=delivery.slices)).choose_size():
        idle.append("slices")
        delivery = replace(delivery, slices=None)
    return delivery, idle
