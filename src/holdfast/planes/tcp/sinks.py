"""Destinations of bytes: direct, paced or delayed by a Delivery, or in batches of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from holdfast.model.delivery import Delivery, DeliveryPart, Lag
from holdfast.planes.paced_delivery import FELT_MS, PacedDelivery
from holdfast.streams.connection_end import ConnectionEnd

LATE_KEPT = 64
"""Limit on delayed pieces; a faster sender has to wait."""


async def sleep_ms(ms: float) -> None:
    await asyncio.sleep(ms / 1000)


class CutOff(Exception):
    """Enough bytes have passed to close the connection."""


class ByteSink:
    """One direction of a connection: passes everything on immediately."""

    def __init__(self, end: ConnectionEnd) -> None:
        self._end = end

    async def write(self, data: bytes) -> None:
        await self._end.write(data)

    async def finish(self) -> None:
        """Signal the end of the data."""
        self._end.finish()


class PacedSink(ByteSink):
    """Passes bytes on according to a delivery; adds to `observed` the parts that had an effect on a receiver that is
    still there."""

    def __init__(self, end: ConnectionEnd, delivery: Delivery, observed: set[DeliveryPart]) -> None:
        super().__init__(end)
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
        self._end.finish()

    def _record_effect(self, at: int) -> None:
        rate = self._delivery.rate
        if rate is not None and self._sent / rate * 1000 >= FELT_MS:
            self._add_effect("rate")
        if at and self._delivery.slices is not None:
            self._add_effect("slices")

    def _add_effect(self, part: DeliveryPart) -> None:
        if self._end.is_receiving():
            self._observed.add(part)


class DelayedSink(ByteSink):
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
        super().__init__(end)
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


HELD = 262_144
"""Bytes of an answer that are held back while a fault may still drop it; a longer answer is sent."""
LIMIT = 1_000_000
"""Bytes of a message that are examined; the rest passes unread."""


class MessageBatch:
    """Reads a client's data in the sizes that its protocol needs, and sends messages to the server.

    Short messages are sent together: everything is sent before the next wait for the client.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], sink: ByteSink) -> None:
        self._read = read
        self._sink = sink
        self._data = bytearray()
        self._at = 0
        self._out: list[bytes] = []

    async def read_exactly(self, size: int) -> bytes:
        """Return this many bytes, or fewer at the end of the input."""
        while len(self._data) - self._at < size:
            if not await self._read_more():
                break
        data = bytes(self._data[self._at : self._at + size])
        self._at += len(data)
        return data

    async def read_some(self, most: int) -> bytes:
        """Return the available bytes, up to this many; b"" at the end of the input."""
        if self._at == len(self._data) and not await self._read_more():
            return b""
        return await self.read_exactly(min(most, len(self._data) - self._at))

    async def _read_more(self) -> bool:
        await self.flush()
        data = await self._read()
        del self._data[: self._at]
        self._at = 0
        self._data += data
        return bool(data)

    def put(self, data: bytes) -> None:
        self._out.append(data)

    async def flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if data:
            await self._sink.write(data)

    async def send(self, data: bytes, rest: int) -> None:
        """Forward a message with this many bytes not read yet."""
        self.put(data)
        while rest and (more := await self.read_some(min(rest, LIMIT))):
            rest -= len(more)
            self.put(more)

    async def skip(self, rest: int) -> None:
        """Drop the rest of a message."""
        while rest and (data := await self.read_some(min(rest, LIMIT))):
            rest -= len(data)

    async def pass_all(self) -> None:
        """Pass everything on unread."""
        while data := await self.read_some(LIMIT):
            self.put(data)

    async def finish(self) -> None:
        await self.flush()
        await self._sink.finish()


class Answers:
    """Sends data to the client: immediately, or once a fault has decided whether to drop it."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._held: bytearray | None = None
        self._lock = asyncio.Lock()

    async def put(self, data: bytes) -> None:
        async with self._lock:
            if self._held is None:
                await self._sink.write(data)
                return
            self._held += data
            if len(self._held) > HELD:
                await self._release()

    def hold(self) -> None:
        """Hold back everything from now on."""
        if self._held is None:
            self._held = bytearray()

    async def release(self) -> None:
        """Send what was held back, and everything that follows."""
        async with self._lock:
            await self._release()

    async def _release(self) -> None:
        held, self._held = self._held, None
        if held:
            await self._sink.write(bytes(held))
