"""The request of a proxy client: its URL, the arguments that faults can match, and bodies that they can change."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from holdfast.http1.bodies import inflate
from holdfast.http1.heads import RequestHead
from holdfast.model.trace import READ_METHODS
from holdfast.planes.urls import DEFAULT_PORTS


@dataclass(frozen=True)
class Origin:
    """The target of a connection."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without its brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"{self.scheme}://{host}"
            if self.port == DEFAULT_PORTS[self.scheme]
            else f"{self.scheme}://{host}:{self.port}"
        )

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


def parse_connect_target(target: str) -> RequestTarget:
    """Return the `host:port` of a CONNECT; raise ValueError if it is malformed."""
    parts = urlsplit(f"//{target}")
    if not parts.hostname or not parts.port or parts.path or parts.username is not None:
        raise ValueError("CONNECT needs host:port")
    return RequestTarget("CONNECT", Origin("https", parts.hostname.lower(), parts.port), "")


def parse_target(head: RequestHead, origin: Origin | None = None) -> RequestTarget:
    """Return the requested URL, inside a tunnel to `origin` or absolute; raise ValueError if it is unclear.

    Inside a tunnel the connection decides where the request goes, not its head.
    """
    if origin is not None and head.target.startswith("/"):
        return RequestTarget(head.method, origin, head.target)
    parts = urlsplit(head.target)
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("a proxy needs an http or https URL")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    own_origin = Origin(scheme, parts.hostname.lower(), parts.port or DEFAULT_PORTS[scheme])
    return RequestTarget(head.method, origin or own_origin, path)


def build_arguments(target: RequestTarget, body: Any) -> Mapping[str, Any]:
    """Return the arguments that a fault's `match` may name: parts of the request, query parameters and JSON fields."""
    path, _, text = target.path.partition("?")
    listed = parse_qs(text, keep_blank_values=True)
    query = {name: values if len(values) > 1 else values[0] for name, values in listed.items()}
    fields = body if isinstance(body, dict) else {}
    own = {"method": target.method, "url": target.url, "path": path, "query": query, "body": body}
    return {**query, **fields, **own}


READABLE = ("gzip", "x-gzip", "deflate", "identity")
"""Content encodings that are decoded for a fault; a client's offer is reduced to these."""


def decode_body(content_type: str | None, body: bytes) -> Any:
    """Return a JSON object or array if the type says JSON; else text; else the bytes themselves."""
    kind, charset = _parse_content_type(content_type)
    try:
        text = body.decode(charset)
    except (ValueError, LookupError):  # not in that charset, or an unknown charset
        return body
    if kind == "application/json" or kind.endswith(("+json", "/json")):
        with suppress(ValueError, RecursionError):
            data = json.loads(text)
            return data if isinstance(data, dict | list) else text
    return text


def to_readable_text(content_type: str | None, body: bytes) -> str:
    """Return the readable part of a body; undecodable bytes are replaced."""
    try:
        return body.decode(_parse_content_type(content_type)[1], "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def encode_body(value: Any, content_type: str | None) -> bytes:
    """Return the value as a body of that type. Text is sent as it is: broken JSON stays broken."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    _, charset = _parse_content_type(content_type)
    if isinstance(value, str):
        try:
            return value.encode(charset)
        except (ValueError, LookupError):
            return value.encode("utf-8", "replace")
    try:
        return json.dumps(value, ensure_ascii=False).encode(charset)
    except (ValueError, LookupError):
        return json.dumps(value).encode()


def decompress(encoding: str | None, body: bytes, limit: int) -> bytes | None:
    """Return the body without its content encoding, at most `limit` bytes; None if it cannot be decoded."""
    name = (encoding or "identity").strip().lower()
    if name in ("identity", ""):
        return body[:limit]
    if name not in READABLE:
        return None
    plain, problem = inflate(name, body, limit)
    return None if problem == "damaged" and not plain else plain[:limit]


def limit_encodings(offered: bytes) -> bytes:
    """Return an `accept-encoding` reduced to the encodings that can be decoded."""
    parts = offered.decode("latin-1").split(",")
    readable = [part.strip() for part in parts if part.partition(";")[0].strip().lower() in READABLE]
    return (", ".join(readable) or "identity").encode("latin-1")


async def chain_chunks(first: bytes, rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    """Yield the beginning of a body, then the rest as it arrives."""
    yield first
    if rest is not None:
        async for chunk in rest:
            yield chunk


@lru_cache(256)
def _parse_content_type(content_type: str | None) -> tuple[str, str]:
    message = Message()
    message["content-type"] = content_type or "text/plain"
    charset = message.get_param("charset")
    return message.get_content_type(), charset if isinstance(charset, str) and charset else "utf-8"
