"""Destinations of bytes: direct, or paced or delayed by a Delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Protocol

from holdfast.model.delivery import Delivery, DeliveryPart, Lag
from holdfast.planes.paced_delivery import NOTICEABLE_MS, PacedDelivery
from holdfast.streams.connection_end import ConnectionEnd

LATE_KEPT = 64
"""Limit on delayed pieces; a faster sender has to wait."""


async def sleep_ms(ms: float) -> None:
    await asyncio.sleep(ms / 1000)


class CutOff(Exception):
    """Enough bytes have passed to close the connection."""


class ByteSink(Protocol):
    """One direction of a connection: the end itself, which passes everything on immediately, or one of those below."""

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None:
        """Signal the end of the data."""


class PacedSink:
    """Passes bytes on according to a delivery; adds to `observed` the parts that had an effect on a receiver that is
    still there."""

    def __init__(self, end: ConnectionEnd, delivery: Delivery, observed: set[DeliveryPart]) -> None:
        self._end = end
        self._delivery = delivery
        self._pacing = PacedDelivery(delivery)
        self._observed = observed
        self._sent = 0

    async def write(self, data: bytes) -> None:
        # An effect counts only if its receiver is still there, before or after the wait: a rate that slows down bytes
        # for nobody was not met.
        self._sent += len(data)
        for at, (wait_ms, piece) in enumerate(self._pacing.split_pieces(data)):
            self._record_effect(at)
            if wait_ms:
                await sleep_ms(wait_ms)
            await self._end.write(piece)
            self._record_effect(at)  # a side that sends no more is only now known to be there
        if self._pacing.is_cut_off:
            self._add_effect("limit")
            raise CutOff

    async def finish(self) -> None:
        if self._delivery.close_ms and not self._end.is_gone:
            self._add_effect("close_ms")
            await sleep_ms(self._delivery.close_ms)
        self._end.end_sending()

    def _record_effect(self, at: int) -> None:
        rate = self._delivery.rate
        if rate is not None and self._sent / rate * 1000 >= NOTICEABLE_MS:
            self._add_effect("rate")
        if at and self._delivery.slices is not None:
            self._add_effect("slices")

    def _add_effect(self, part: DeliveryPart) -> None:
        if self._end.is_receiving():
            self._observed.add(part)


class DelayedSink:
    """Passes bytes on with a delay, in order; `steady_ms` is not part of a fault."""

    def __init__(
        self,
        inner: ByteSink,
        end: ConnectionEnd,
        lags: Sequence[Lag],
        observed: set[DeliveryPart],
        *,
        steady_ms: float,
    ) -> None:
        self._end = end
        self._inner = inner
        self._lags = [(lag, Random(lag.seed)) for lag in lags]
        self._observed = observed
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
        # Each piece has its own delay, but none may overtake an earlier one: a connection keeps its order. Jitter
        # therefore only ever delays the pieces that follow.
        drawn = (lag.delay_ms + rng.uniform(-lag.jitter_ms, lag.jitter_ms) for lag, rng in self._lags)
        lag_ms = self._steady_ms + sum(max(0.0, ms) for ms in drawn)
        self._due = max(self._due, self._loop.time() + lag_ms / 1000)
        await self._queue.put((self._due, data))

    async def finish(self) -> None:
        await self._queue.put((self._due, b""))
        await asyncio.wait({self._task})
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop sending, because the connection is over."""
        self._task.cancel()

    def _record_effect(self) -> None:
        if self._lags and self._end.is_receiving():
            self._observed.add("lags")

    async def _pass_on(self) -> None:
        while True:
            due, data = await self._queue.get()
            if self._failure is None:
                try:
                    await asyncio.sleep(max(0.0, due - self._loop.time()))
                    if data:
                        await self._inner.write(data)
                        self._record_effect()
                    else:
                        await self._inner.finish()
                except (OSError, CutOff) as failure:  # raised at the next write; the queue continues to be emptied
                    self._failure = failure
            if not data:
                return
