"""A database server that ends while Holdfast asks it: a harness error, not a query that the server refused."""

from __future__ import annotations

import asyncio
from struct import pack

import pytest

from holdfast.errors import ServiceFailed
from holdfast.world.services.postgres.session import PgSession

_STARTED = b"R" + pack("!ii", 8, 0) + b"Z" + pack("!i", 5) + b"I"
"""A login without a password, and that the server waits for a query."""


async def end_at_the_first_query(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
    writer.write(_STARTED)
    await reader.readexactly(1)
    writer.close()


async def query_the_server() -> None:
    server = await asyncio.start_server(end_at_the_first_query, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        login = {"host": "127.0.0.1", "port": str(port), "user": "u", "dbname": "d"}
        session = PgSession("db", login | {"sslmode": "disable", "gssencmode": "disable"})
        await session.query("SELECT 1", timeout_s=5.0, keep=1)


def test_a_server_that_ends_during_a_query_is_a_harness_error() -> None:
    with pytest.raises(ServiceFailed, match="db"):
        asyncio.run(query_the_server())
