"""Failures of an upstream connection."""

from __future__ import annotations

import socket
import ssl
from typing import Literal, TypeAlias

FailureKind: TypeAlias = Literal["dns", "refused", "tls", "timeout", "closed", "protocol"]


class UpstreamFailed(Exception):
    """A server could not be reached, or its answer was not valid HTTP."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message


class NotConnected(UpstreamFailed):
    """No connection could be made; see its cause."""


def build_connect_error(error: Exception, host: str, port: int, connect_s: float, *, tls: bool = False) -> NotConnected:
    """Return why a connection, with or without TLS, could not be made."""
    where = f"{host}:{port}"
    match error:
        case socket.gaierror() | UnicodeError():
            return NotConnected("dns", f"the name {host} cannot be resolved: {error}")
        case ssl.SSLError() | ConnectionResetError() | ConnectionAbortedError() if tls:
            return NotConnected("tls", f"no TLS with {where}: {error}")
        case TimeoutError():
            return NotConnected("timeout", f"no connection to {where} within {connect_s:g} s")
    return NotConnected("refused", f"no connection to {where}: {error}")
