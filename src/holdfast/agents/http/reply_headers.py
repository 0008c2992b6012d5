"""Reads the headers of a reply: type, charset and compression of its body, and the cookies that it sets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache

from msgspec import Struct

from holdfast.agents.http.request import HttpUrl
from holdfast.http1.bodies import ENCODINGS, inflate
from holdfast.http1.heads import RawFields, find_header

_OTHERS = frozenset(("br", "zstd", "compress"))
"""Encodings that Holdfast does not request and cannot read; any other word is ignored."""


def read_content_type(fields: RawFields) -> tuple[str, str | None]:
    """Return the type and charset of a body."""
    return _parse_content_type(find_header(fields, "content-type"))


@lru_cache(64)
def _parse_content_type(header: str | None) -> tuple[str, str | None]:
    if header is None:
        return "application/octet-stream", None
    kind, *params = header.split(";")
    kind = kind.strip().lower()
    for param in params:
        name, _, value = param.partition("=")
        if name.strip().lower() == "charset":
            return kind, value.strip().strip('"') or None
    return kind, None


def unpack_body(fields: RawFields, body: bytes, limit: int, *, complete: bool) -> tuple[bytes, str]:
    """Decompress a body as far as possible, up to one byte over `limit`.

    Returns why it cannot be read to its end, too; empty if it can, or if the body was not `complete`.
    """
    packing = (find_header(fields, "content-encoding") or "").strip().lower()
    if not body or not packing:
        return body, ""
    if packing in _OTHERS:
        return b"", f"its Content-Encoding is {packing}, which was not requested"
    if packing not in ENCODINGS:
        return body, ""
    plain, problem = inflate(packing, body, limit)
    if problem == "damaged":
        return plain, "the body does not match its Content-Encoding"
    return plain, "the body ends before its Content-Encoding does" if problem and complete else ""


class Cookie(Struct, frozen=True):
    """One cookie that is sent to the agent."""

    value: str
    path: str
    until: float
    """Expiry time in seconds since the epoch."""


class CookieJar:
    """Cookies for one URL; those of other hosts and paths are dropped, because they would never be sent."""

    def __init__(self, url: HttpUrl, spec_cookies: str = "") -> None:
        """`spec_cookies` are cookies of the spec, as in a header; the agent can replace them."""
        self._url = url
        self._spec_cookies = dict(_split_pairs(spec_cookies))
        self._stored: dict[tuple[str, str], Cookie] = {}

    def store(self, fields: RawFields) -> None:
        """Store the cookies that a reply sets."""
        for name, value in fields:
            if name.lower() == b"set-cookie":
                self._store_line(value.decode("utf-8", "replace"))

    @property
    def header(self) -> str:
        """The Cookie header; empty if there are none."""
        now = time.time()
        live = [(name, cookie) for (name, _), cookie in self._stored.items() if cookie.until > now]
        live.sort(key=lambda item: -len(item[1].path))
        set_by_agent = {name for name, _ in live}
        own = [f"{name}={value}" for name, value in self._spec_cookies.items() if name not in set_by_agent]
        return "; ".join([*own, *(f"{name}={cookie.value}" for name, cookie in live)])

    def _store_line(self, line: str) -> None:
        first, _, rest = line.partition(";")
        name, sign, value = first.partition("=")
        name, attributes = name.strip(), {key.lower(): text for key, text in _split_pairs(rest)}
        host, domain = self._url.endpoint.host.lower(), attributes.get("domain", "").lower().removeprefix(".")
        is_own_host = not domain or host == domain or host.endswith("." + domain)
        if not sign or not name or not is_own_host:
            return
        if "secure" in attributes and self._url.endpoint.scheme != "https":
            return
        path = attributes.get("path", "")
        path = path if path.startswith("/") else self._url.path.rpartition("/")[0] or "/"
        if self._url.path == path or self._url.path.startswith(path if path.endswith("/") else f"{path}/"):
            self._stored[name, path] = Cookie(value.strip(), path, _compute_expiry(attributes))


def _split_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the `name=value` pairs; a part without a value is a name."""
    for piece in text.split(";"):
        name, _, value = piece.partition("=")
        if name.strip():
            yield name.strip(), value.strip()


def _compute_expiry(attributes: dict[str, str]) -> float:
    """Return when a cookie expires; without an expiry, never within a trial."""
    with suppress(KeyError, ValueError):
        return time.time() + int(attributes["max-age"])
    with suppress(KeyError, ValueError, OverflowError):
        return parsedate_to_datetime(attributes["expires"]).timestamp()
    return float("inf")
