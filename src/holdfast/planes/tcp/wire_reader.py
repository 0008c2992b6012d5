"""A WireReader: a connection to a database that is read along, so that faults can act on its transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from holdfast.planes.tcp.connection_end import ConnectionEnd
from holdfast.planes.tcp.sinks import ByteSink
from holdfast.planes.tcp.transaction_state import Due, TransactionState
from holdfast.protocols import Reply
from holdfast.sqltext.transaction import TransactionStatement

HELD = 262_144
"""Bytes of an answer that are kept back while a fault may still lose it; a longer one goes out."""

REFUSALS = ("serialization_failure", "lock_timeout", "read_only")
"""Kinds of failure that a database tells its client of; others cost the connection."""


class Sending(Protocol):
    """How a message goes to the server."""

    async def __call__(self, *, answered: bool) -> Reply:
        """Sends it; `answered`: its answer is there, and kept back, when this returns."""
        ...


class Faulty(Protocol):
    """The faults that wait for a connection's transactions."""

    def begin(self) -> int:
        """A transaction begins; which one it is, from 1."""
        ...

    def end(self) -> None:
        """A transaction is over."""
        ...

    def wrote(self, statement: TransactionStatement) -> None:
        """A write goes to the server."""
        ...

    async def take(self, dues: Sequence[Due], send: Sending) -> None:
        """Sends a message through the faults that wait at its steps.

        Raises Refused where one makes the database refuse it, another Failed where it costs the connection.
        """
        ...

    async def tls(self) -> None:
        """The client wants TLS; raises Failed where a fault breaks it."""
        ...

    def unreadable(self, why: str) -> None:
        """What follows cannot be read: no fault of transactions is met here."""
        ...


class WireReader(Protocol):
    """A connection that is read along."""

    async def up(self) -> None:
        """Carries what the client says, until it ends."""
        ...

    async def down(self) -> None:
        """Carries what the server says, until it ends."""
        ...


class StatementRefused(Exception):
    """A fault makes the database refuse a statement."""

    def __init__(self, kind: str, statement: TransactionStatement) -> None:
        super().__init__(kind)
        self.kind = kind
        self.statement = statement
        """The one that was met, of several in a message."""


class Writing(Protocol):
    """Sends bytes on."""

    async def __call__(self, data: bytes) -> None: ...


class Answers:
    """What goes back to the client: at once, or kept back until it is known whether it is lost."""

    def __init__(self, write: Writing) -> None:
        self._write = write
        self._held: bytearray | None = None
        self._lock = asyncio.Lock()

    async def put(self, data: bytes) -> None:
        async with self._lock:
            if self._held is None:
                await self._write(data)
                return
            self._held += data
            if len(self._held) > HELD:
                await self._release()

    def hold(self) -> None:
        """From now on nothing goes out."""
        if self._held is None:
            self._held = bytearray()

    async def release(self) -> None:
        """What was kept back goes out, and what follows."""
        async with self._lock:
            await self._release()

    async def _release(self) -> None:
        held, self._held = self._held, None
        if held:
            await self._write(bytes(held))


class ServerListener(Protocol):
    """What a protocol makes of its server's words."""

    def scan(self, data: bytes) -> bytes:
        """What of it is for the client."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...


async def listen(
    server: ConnectionEnd,
    replies: ServerListener,
    answers: Answers,
    to_client: ByteSink,
    transactions: TransactionState,
) -> None:
    """Carries what a server says to its client, until it ends."""
    try:
        while data := await server.read():
            if kept := replies.scan(data):
                await answers.put(kept)
        await answers.release()
        await to_client.finish()
    finally:
        replies.end()
        transactions.told(open=False)
