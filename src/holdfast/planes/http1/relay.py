"""Bytes from one side to the other: a reply to the client, or a whole connection both ways."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.planes.http1.exchange import Exchange
from holdfast.planes.http1.failures import UpstreamFailed
from holdfast.planes.http1.heads import end_to_end
from holdfast.planes.http1.incoming import Incoming
from holdfast.planes.http1.tunnel import Tunnel
from holdfast.planes.http1.wire import UPGRADE, Wire

__all__ = ["dial", "end_to_end", "join", "pump", "tunnel"]


async def pump(exchange: Exchange, incoming: Incoming, *, tap: Callable[[bytes], None] | None = None) -> None:
    """Sends an upstream reply on as it comes; `tap` sees each piece of its body.

    Raises UpstreamFailed where the upstream breaks off, with the client's connection cut at that place, and
    ConnectionResetError if the client leaves, with the upstream's aborted.
    """
    try:
        headers = end_to_end(incoming.headers)
        await exchange.start(incoming.status, headers, incoming.length, reason=incoming.reason)
        while data := await incoming.inflow.get():
            if tap is not None:
                tap(data)
            await exchange.write(data)
        await exchange.finish()
    except UpstreamFailed:
        exchange.cut()
        raise
    finally:
        incoming.abort()


async def tunnel(a: Tunnel, host: str, port: int, *, connect_s: float = 10.0) -> None:
    """Copies both ways between a client and a server until both have ended; UpstreamFailed if it cannot be reached."""
    try:
        wire = await dial(host, port, connect_s=connect_s)
    except UpstreamFailed:
        a.abort()
        raise
    await join(a, wire)


async def dial(host: str, port: int, *, connect_s: float = 10.0) -> Wire:
    """A connection to a server, to be joined with a tunnel; nothing is read from it before. Raises UpstreamFailed."""
    wire = Wire()
    wire.hold(UPGRADE)
    await wire.connect(host, port, connect_s)
    return wire


async def join(a: Tunnel, b: Wire) -> None:
    """Copies both ways until both have ended. A direction that ends is ended on the other side too."""
    client = a.connection
    try:
        if early := a.early():
            b.send(early)
        client.other, b.other = b, client
        client.into, b.into = b.send, client.send
        client.release(UPGRADE)
        b.release(UPGRADE)
        if client.gone:
            b.close()
        await client.over.wait()
        await b.over.wait()
    finally:
        client.abort()
        b.abort()
