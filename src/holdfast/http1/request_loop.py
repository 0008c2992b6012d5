"""The requests of one connection, answered one after another by one task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.http1.bad_request import BadRequest
from holdfast.http1.client_connection import ClientConnection
from holdfast.http1.exchange import SPARE, Exchange
from holdfast.http1.frame import framed
from holdfast.http1.request_parser import RequestParser

Serve: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers one request."""

LINGER_S = 1.0
"""So long a client may go on sending after its answer: closing earlier could destroy the answer on its way."""


class RequestLoop:
    """What a client asks on one connection, and `serve`, which answers it."""

    def __init__(self, serve: Serve, connection: ClientConnection) -> None:
        self._serve = serve
        self._connection = connection
        self._parser = RequestParser(connection)
        self._busy = False
        self.feed = self._parser.feed
        self.lost = self._parser.lost

    @property
    def idle(self) -> bool:
        """Between two requests."""
        return not self._busy and not self.taken and self._parser.idle

    @property
    def due(self) -> bool:
        """All of a request has come, and its reply has not gone."""
        return not self.idle and not self.taken and not self._parser.partial

    @property
    def taken(self) -> bool:
        """HTTP has ended here, the connection has not."""
        return self._parser.taken

    async def run(self) -> None:
        """Answers until the client has asked all, then ends the connection, unless it has become something else."""
        clean = False
        try:
            while (entry := await self._parser.next()) is not None:
                self._busy = True
                if not await self._answer(entry):
                    break
                self._busy = False
            clean = True
        finally:
            if not self.taken:
                self._connection.close() if clean else self._connection.abort()

    async def _answer(self, entry: Exchange | BadRequest) -> bool:
        """Answers a request; whether the connection can serve another."""
        if isinstance(entry, BadRequest):
            await self._turn_away(entry)
            return False
        connection = self._connection
        try:
            await self._serve(entry)
            if not entry.finished and not entry.gone:
                raise RuntimeError(f"{entry.head.method} was not answered to the end")
        except BadRequest as refused:
            await self._turn_away(refused, entry)
            return False
        except Exception as error:
            if not connection.gone:
                connection.owner.failed(connection, entry.head.method, error)
            connection.abort()
            return False
        if entry.taken or connection.gone:
            return False
        return entry.inflow.ended or await self._spent(entry) if entry.keep_alive else await self._last(entry)

    async def _last(self, exchange: Exchange) -> bool:
        """Sees to it that the last reply arrives."""
        if not exchange.inflow.ended:
            await self._linger()
        return False

    async def _spent(self, exchange: Exchange) -> bool:
        """Reads what is left of a request that nobody read to its end, if it is short and comes soon."""
        spent = 0
        try:
            async with asyncio.timeout(LINGER_S):
                while data := await exchange.inflow.get():
                    spent += len(data)
                    if spent > SPARE:
                        break
                else:
                    return True
        except (TimeoutError, BadRequest, ConnectionResetError):
            pass
        await self._linger()
        return False

    async def _turn_away(self, refused: BadRequest, exchange: Exchange | None = None) -> None:
        """Says what is wrong with a request, unless an answer was begun, and ends the connection."""
        connection = self._connection
        connection.owner.refused(connection, refused)
        if exchange is not None and exchange.answered:
            connection.abort()
        elif not connection.gone:
            text = f"{refused}\n".encode()
            headers = [("Content-Type", "text/plain; charset=utf-8")]
            frame = framed(refused.status, headers, len(text), method="GET", modern=True, keep_alive=False)
            connection.send(frame.head + text)
            await self._linger()

    async def _linger(self) -> None:
        """Ends our side, and reads and drops what the client still sends, for a moment."""
        connection = self._connection
        connection.into = connection.spill
        connection.release_all()
        connection.end()
        try:
            async with asyncio.timeout(LINGER_S):
                await connection.over.wait()
        except TimeoutError:
            connection.abort()
