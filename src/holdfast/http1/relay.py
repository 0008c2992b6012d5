"""Bytes from one side to the other: a reply to the client, or a whole connection both ways."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.http1.exchange import Exchange
from holdfast.http1.heads import end_to_end
from holdfast.http1.tunnel import Tunnel
from holdfast.http1.upstream_connection import UpstreamReply
from holdfast.streams.failures import UpstreamFailed
from holdfast.streams.socket_stream import UPGRADE, SocketStream

__all__ = ["end_to_end", "join", "pump"]


async def pump(exchange: Exchange, incoming: UpstreamReply, *, tap: Callable[[bytes], None] | None = None) -> None:
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


async def join(a: Tunnel, b: SocketStream) -> None:
    """Copies both ways until both have ended. A direction that ends is ended on the other side too."""
    client = a.connection
    try:
        if early := a.early():
            b.send(early)
        client.other, b.other = b, client
        client.on_data, b.on_data = b.send, client.send
        client.release(UPGRADE)
        b.release(UPGRADE)
        if client.gone:
            b.close()
        await client.over.wait()
        await b.over.wait()
    finally:
        client.abort()
        b.abort()
