"""The server: `serve` listens, and answers each request with one function. HTTP may also continue inside a tunnel."""

from __future__ import annotations

import socket
from functools import partial
from ssl import SSLContext

from holdfast.http1.exchange import Exchange, Tunnel
from holdfast.http1.heads import BadRequest, RequestHead
from holdfast.http1.listener import ClientConnection, Listener
from holdfast.http1.request_loop import RequestLoop, Serve

__all__ = [
    "BadRequest", "ClientConnection", "Exchange", "Listener", "RequestHead", "Serve", "Tunnel", "serve", "serve_plain",
    "serve_tls",
]  # fmt: skip


async def serve(
    handler: Serve,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    sock: socket.socket | None = None,
    tls: SSLContext | None = None,
) -> Listener:
    """Listen, and call `handler` once per request.

    An exception in it aborts the connection and is passed to `on_error`.
    """
    listener = Listener(partial(RequestLoop, handler))
    await listener.listen(host, port, sock, tls)
    return listener


def serve_plain(tunnel: Tunnel, serve: Serve) -> ClientConnection:
    """Continue with HTTP: for requests that a client sends through a tunnel without TLS."""
    inner = _continue_inside(tunnel, serve)
    inner.adopt_plain(tunnel.connection, tunnel.take_early())
    return inner


async def serve_tls(tunnel: Tunnel, context: SSLContext, serve: Serve) -> ClientConnection:
    """Continue with TLS, and serve the requests inside it.

    Returns after the handshake; raises OSError if it fails: an ssl.SSLError if the client states a reason,
    ConnectionResetError if it just leaves.
    """
    inner = _continue_inside(tunnel, serve)
    await inner.adopt_with_tls(tunnel.connection, context, tunnel.take_early())
    return inner


def _continue_inside(tunnel: Tunnel, serve: Serve) -> ClientConnection:
    outer = tunnel.connection
    return ClientConnection(outer.owner, partial(RequestLoop, serve), outer)
