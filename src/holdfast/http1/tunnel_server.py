"""HTTP inside a tunnel: the requests of a client on a connection that CONNECT made, with TLS or without."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.http1.client_connection import ClientConnection
from holdfast.http1.request_loop import RequestLoop, Serve
from holdfast.http1.tunnel import Tunnel

if TYPE_CHECKING:
    import ssl


def serve_plain(tunnel: Tunnel, serve: Serve) -> ClientConnection:
    """Speaks HTTP again from here on: requests that a client sends through a tunnel without TLS."""
    inner = _inside(tunnel, serve)
    inner.succeed(tunnel.connection, tunnel.early())
    return inner


async def serve_tls(tunnel: Tunnel, context: ssl.SSLContext, serve: Serve) -> ClientConnection:
    """Speaks TLS from here on, and serves the requests inside it.

    Returns once the client has agreed; raises OSError if it does not: an ssl.SSLError where it says why,
    ConnectionResetError where it just leaves.
    """
    if tunnel.read_from:
        raise RuntimeError("TLS begins before anything is read")
    inner = _inside(tunnel, serve)
    await inner.adopt(tunnel.connection, context, tunnel.early())
    return inner


def _inside(tunnel: Tunnel, serve: Serve) -> ClientConnection:
    outer = tunnel.connection
    return ClientConnection(outer.owner, partial(RequestLoop, serve), outer)
