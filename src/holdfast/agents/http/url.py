"""A URL to request: its address, and how it is shown."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import quote, unquote, urljoin, urlsplit

from msgspec import Struct

from holdfast.http1.outgoing_request import Endpoint, parse_endpoint

_SPACES = re.compile(r"[\x00-\x20\x7f]")


class HttpUrl(Struct, frozen=True):
    """An http or https URL."""

    text: str
    """The URL as the user wrote it."""
    address: str
    """The URL as requested: without a fragment or spaces."""
    endpoint: Endpoint

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port, which URLs of one server share."""
        return self.endpoint.scheme, self.endpoint.host, self.endpoint.port

    @property
    def path(self) -> str:
        return self.endpoint.target.partition("?")[0]

    @property
    def display_text(self) -> str:
        """The URL without parts that may be secret: user, password, query."""
        return f"{self.endpoint.scheme}://{self.endpoint.authority}{self.path}"

    @property
    def authorization(self) -> str | None:
        """The user and password of the URL as a header."""
        parts = urlsplit(self.text)
        if parts.username is None and parts.password is None:
            return None
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return "Basic " + b64encode(user.encode("utf-8", "replace")).decode()

    def join(self, other: str) -> HttpUrl:
        """Resolve another URL, which may be relative to this one; raise ValueError if it is invalid."""
        return read_url(urljoin(self.text, other))


def read_url(text: str) -> HttpUrl:
    """Parse a URL; raise ValueError if HTTP cannot request it. Spaces in its path are quoted."""
    parts = urlsplit(text)
    path, query = (_SPACES.sub(lambda match: quote(match[0]), part) for part in (parts.path, parts.query))
    address = parts._replace(path=path, query=query, fragment="").geturl()
    return HttpUrl(text, address, parse_endpoint(address))
