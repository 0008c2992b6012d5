"""Copies bytes: a reply to the client, or a connection in both directions."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.http1.exchange import Exchange
from holdfast.http1.heads import drop_hop_by_hop
from holdfast.http1.tunnel import Tunnel
from holdfast.http1.upstream_connection import UpstreamReply
from holdfast.streams.failures import UpstreamFailed
from holdfast.streams.socket_stream import UPGRADE, SocketStream

__all__ = ["drop_hop_by_hop", "forward_reply", "join"]


async def forward_reply(
    exchange: Exchange, incoming: UpstreamReply, *, tap: Callable[[bytes], None] | None = None
) -> None:
    """Forward an upstream reply as it arrives; `tap` receives each piece of its body.

    Raises UpstreamFailed if the upstream ends early, after cutting the client's connection at that position, and
    ConnectionResetError if the client leaves, after aborting the upstream's connection.
    """
    try:
        headers = drop_hop_by_hop(incoming.headers)
        await exchange.start(incoming.status, headers, incoming.length, reason=incoming.reason)
        while data := await incoming.inflow.get():
            if tap is not None:
                tap(data)
            await exchange.write(data)
        await exchange.finish()
    except UpstreamFailed:
        exchange.break_connection()
        raise
    finally:
        incoming.abort()


async def join(a: Tunnel, b: SocketStream) -> None:
    """Copy in both directions until both have ended. The end of a direction is passed on to the other side."""
    client = a.connection
    try:
        if early := a.take_early():
            b.send(early)
        client.other, b.other = b, client
        client.on_data, b.on_data = b.send, client.send
        client.release(UPGRADE)
        b.release(UPGRADE)
        if client.is_gone:
            b.close()
        await client.over.wait()
        await b.over.wait()
    finally:
        client.abort()
        b.abort()
