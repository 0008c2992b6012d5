"""One changed request and its reply on a connection of their own: sent at any pace, read at any pace."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from holdfast.agents.http_changed_request import WireRequest
from holdfast.agents.http_client import trusted
from holdfast.http1.collected_reply import CollectedReply, ReplyCollector
from holdfast.http1.outgoing_request import Endpoint
from holdfast.http1.raw_socket import RawSocket, open_socket
from holdfast.model.task import RequestChange
from holdfast.processes.program import stopped

PIECES = 10
"""Into how many pieces what is slow is cut."""
_PIECE = 65_536
_SMALL_READ = 64


class RawExchange:
    """Sends one request and reads its reply; `slept_s` is what our own pauses took."""

    def __init__(self, change: RequestChange, wire: WireRequest, body_limit: int, slow_s: float) -> None:
        """`slow_s`: all pauses together."""
        self._slow = change.slow
        self._wire = wire
        self._got = ReplyCollector(wire.method, body_limit)
        self._slow_s = slow_s
        self._heard = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.slept_s = 0.0

    async def make(self, place: Endpoint, deadline: float, *, abandon: bool = False) -> CollectedReply:
        """What came back until `deadline`, a time of the loop's clock. NotConnected if there was no connection."""
        room = 2_048 if self._slow == "reply" else None
        link = await open_socket(place, deadline - self._loop.time(), trusted, room=room)
        sending = asyncio.create_task(self._send(link))
        try:
            async with asyncio.timeout_at(deadline):
                await (sending if abandon else self._read(link))
        except TimeoutError:
            self._got.reply.late = True
        finally:
            try:
                await stopped(sending)
            finally:
                link.close()
        return self._got.reply

    async def _send(self, link: RawSocket) -> None:
        """All of the request. A server that does not want the rest of it may have answered: reading goes on."""
        with suppress(OSError):
            head, rest = self._wire.head, self._wire.rest
            if self._slow == "head":
                await self._send_slowly(link, head)
            else:
                await link.send(head)
            if self._slow == "before_body":
                await self._pause(self._slow_s)
            elif self._slow == "continue":
                await self._until_heard()
            if self._slow == "body":
                await self._send_slowly(link, rest)
            else:
                for at in range(0, len(rest), _PIECE):
                    await link.send(rest[at : at + _PIECE])

    async def _send_slowly(self, link: RawSocket, data: bytes) -> None:
        size = max(1, -(-len(data) // PIECES))
        for at in range(0, len(data), size):
            if at:
                await self._pause(self._slow_s / (PIECES - 1))
            await link.send(data[at : at + size])

    async def _read(self, link: RawSocket) -> None:
        """Until the reply is whole, or there is no more of it; the first pieces small and slow if they should be."""
        slow = PIECES if self._slow == "reply" else 0
        while not self._got.over:
            try:
                data = await (link.receive(_SMALL_READ) if slow else link.receive())
            except OSError:
                self._got.lost(False)
                return
            if not data:
                self._got.lost(True)
                return
            self._heard.set()
            self._got.feed(data)
            if slow and not self._got.over:
                slow -= 1
                await self._pause(self._slow_s / PIECES)

    async def _until_heard(self) -> None:
        start = self._loop.time()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._slow_s):
                await self._heard.wait()
        self.slept_s += self._loop.time() - start

    async def _pause(self, seconds: float) -> None:
        start = self._loop.time()
        await asyncio.sleep(seconds)
        self.slept_s += self._loop.time() - start
