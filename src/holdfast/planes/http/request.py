"""The request of a proxy client: one URL, and arguments that faults can match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from holdfast.http1.heads import RequestHead
from holdfast.model.trace import READ_METHODS

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Origin:
    """The target of a connection."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without its brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" if self.port == _PORTS[self.scheme] else f"{self.scheme}://{host}:{self.port}"

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class RequestTarget:
    """One request: a method and a URL."""

    method: str
    origin: Origin
    path: str
    """The path with its query, as sent."""

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def is_write(self) -> bool:
        return self.method not in READ_METHODS


def parse_connect_target(target: str) -> Origin:
    """Return the `host:port` of a CONNECT; raise ValueError if it is malformed."""
    parts = urlsplit(f"//{target}")
    if not parts.hostname or not parts.port or parts.path or parts.username is not None:
        raise ValueError("CONNECT needs host:port")
    return Origin("https", parts.hostname.lower(), parts.port)


def parse_target(head: RequestHead, origin: Origin | None = None) -> RequestTarget:
    """Return the requested URL, inside a tunnel to `origin` or absolute; raise ValueError if it is unclear.

    Inside a tunnel the connection decides where the request goes, not its head.
    """
    if origin is not None and head.target.startswith("/"):
        return RequestTarget(head.method, origin, head.target)
    parts = urlsplit(head.target)
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname:
        raise ValueError("a proxy needs an http or https URL")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    there = Origin(scheme, parts.hostname.lower(), parts.port or _PORTS[scheme])
    return RequestTarget(head.method, origin or there, path)


def build_arguments(want: RequestTarget, body: Any) -> Mapping[str, Any]:
    """Return the arguments that a fault's `match` may name: parts of the request, query parameters and JSON fields."""
    path, _, text = want.path.partition("?")
    query: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        before = query.get(name, [])
        query[name] = [*(before if isinstance(before, list) else [before]), value] if name in query else value
    fields = body if isinstance(body, dict) else {}
    own = {"method": want.method, "url": want.url, "path": path, "query": query, "body": body}
    return {**query, **fields, **own}
