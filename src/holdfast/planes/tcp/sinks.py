"""Destinations of bytes: direct, or paced by a Delivery. Each sink wraps the next and records observed effects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Protocol

from holdfast.model.delivery import Delivery, DeliveryPart, Lag
from holdfast.planes.paced_delivery import FELT_MS, PacedDelivery
from holdfast.protocols.fault import Sleep
from holdfast.streams.connection_end import ConnectionEnd

LATE_KEPT = 64
"""Limit on delayed pieces; a faster sender has to wait."""


class CutOff(Exception):
    """Enough bytes have passed to close the connection."""


class ByteSink(Protocol):
    """One direction of a connection."""

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None:
        """Signal the end of the data."""
        ...

    def stop(self) -> None:
        """Stop sending, because the connection is over."""
        ...


class PlainSink:
    """Passes everything on immediately."""

    def __init__(self, end: ConnectionEnd) -> None:
        self._end = end

    async def write(self, data: bytes) -> None:
        await self._end.write(data)

    async def finish(self) -> None:
        self._end.finish()

    def stop(self) -> None:
        """Do nothing: nothing is buffered here."""


class PacedSink:
    """Passes bytes on according to a delivery; adds to `observed` the parts that had an effect on a receiver that is
    still there."""

    def __init__(self, end: ConnectionEnd, delivery: Delivery, observed: set[DeliveryPart], sleep: Sleep) -> None:
        self._end = end
        self._delivery = delivery
        self._pacing = PacedDelivery(delivery)
        self._felt = observed
        self._sleep = sleep
        self._sent = 0

    async def write(self, data: bytes) -> None:
        self._sent += len(data)
        for at, (wait_ms, piece) in enumerate(self._pacing.split_pieces(data)):
            self._record_effect(at)
            if wait_ms:
                await self._sleep(wait_ms)
            await self._end.write(piece)
            self._record_effect(at)  # a side that sends no more is only now known to be there
        if self._pacing.is_cut_off:
            self._add_effect("limit")
            raise CutOff

    async def finish(self) -> None:
        if self._delivery.close_ms and not self._end.is_gone:
            self._add_effect("close_ms")
            await self._sleep(self._delivery.close_ms)
        self._end.finish()

    def stop(self) -> None:
        """Do nothing: nothing is buffered here."""

    def _record_effect(self, at: int) -> None:
        rate = self._delivery.rate
        if rate is not None and self._sent / rate * 1000 >= FELT_MS:
            self._add_effect("rate")
        if at and self._delivery.slices is not None:
            self._add_effect("slices")

    def _add_effect(self, part: DeliveryPart) -> None:
        if self._end.is_receiving():
            self._felt.add(part)


class DelayedSink:
    """Passes bytes on with a delay, in order; `steady_ms` is not part of a fault."""

    def __init__(
        self,
        inner: ByteSink,
        end: ConnectionEnd,
        lags: Sequence[Lag],
        observed: set[DeliveryPart],
        sleep: Sleep,
        *,
        steady_ms: float = 0.0,
    ) -> None:
        self._inner = inner
        self._end = end
        self._lags = [(lag, Random(lag.seed)) for lag in lags]
        self._felt = observed
        self._sleep = sleep
        self._steady_ms = steady_ms
        self._queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(LATE_KEPT)
        self._due = 0.0
        self._failure: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._pass_on())

    async def write(self, data: bytes) -> None:
        if self._failure is not None:
            raise self._failure
        self._record_effect()
        self._due = max(self._due, self._loop.time() + self._compute_lag() / 1000)
        await self._queue.put((self._due, data))

    async def finish(self) -> None:
        await self._queue.put((self._due, b""))
        await asyncio.wait({self._task})
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._task.cancel()

    def _compute_lag(self) -> float:
        drawn = (lag.delay_ms + rng.uniform(-lag.jitter_ms, lag.jitter_ms) for lag, rng in self._lags)
        return self._steady_ms + sum(max(0.0, ms) for ms in drawn)

    def _record_effect(self) -> None:
        if self._lags and self._end.is_receiving():
            self._felt.add("lags")

    async def _pass_on(self) -> None:
        while True:
            due, data = await self._queue.get()
            if self._failure is None:
                try:
                    await self._sleep(max(0.0, (due - self._loop.time()) * 1000))
                    if data:
                        await self._inner.write(data)
                        self._record_effect()
                    else:
                        await self._inner.finish()
                except (OSError, CutOff) as failure:  # raised at the next write; the queue continues to be emptied
                    self._failure = failure
            if not data:
                return
