"""The head of requests to an agent: all of it but the first line and the length is the same each time."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.agents.http_url import HttpUrl
from holdfast.http1.heads import block, lines
from holdfast.version import __version__

_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_NOTHING: frozenset[bytes] = frozenset()


class FixedHead:
    """What every request to one server says of itself."""

    def __init__(self, url: HttpUrl, headers: Mapping[str, str], *, keep: bool) -> None:
        """`keep`: the server may keep the connection. ValueError for a header that cannot be sent."""
        given = {name.lower(): (name, value) for name, value in headers.items()}
        self.cookie = given.pop("cookie", ("", ""))[1]
        """The cookies that the spec gives."""
        authorization = url.authorization
        if authorization is not None and "authorization" in given:
            raise ValueError("a user in the URL and a header Authorization exclude each other")
        fields = {
            "host": ("Host", _authority(url)),
            "user-agent": ("User-Agent", f"holdfast/{__version__}"),
            "accept": ("Accept", "*/*"),
            "accept-encoding": ("Accept-Encoding", "gzip, deflate"),
            **({"authorization": ("Authorization", authorization)} if authorization else {}),
            **({} if keep else {"connection": ("Connection", "close")}),
            **given,
        }
        rest, names = lines([(name.encode(), value.encode()) for name, value in fields.values()], _NOTHING)
        if framing := _FRAMING.intersection(names):
            raise ValueError(f"the header {min(framing).decode()} follows from the body, and is not set by hand")
        block(self.cookie.encode(), rest)  # raises for a line break
        self.lines = tuple(rest)
        """As they are sent, without their ends."""
        self._lines = b"".join([line + b"\r\n" for line in rest])

    def written(self, method: str, target: str, body: bytes | None, cookie: str) -> bytes:
        """A whole request, `target` being one that needs no more quoting. ValueError for a method that is none."""
        if method not in _WITH_BODY and not _METHOD.fullmatch(method):
            raise ValueError(f"not a method: {method[:80]!r}")
        first = f"{method} {target} HTTP/1.1\r\n".encode()
        cookies = b"Cookie: %b\r\n" % cookie.encode() if cookie else b""
        if body is None and method not in _WITH_BODY:
            return b"%b%b%b\r\n" % (first, self._lines, cookies)
        body = body or b""
        return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (first, self._lines, cookies, len(body), body)


def _authority(url: HttpUrl) -> str:
    name = url.endpoint.authority
    return name if name.isascii() else name.encode("idna").decode()
