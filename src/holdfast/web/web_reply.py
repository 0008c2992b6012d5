"""The gate and the replies of the viewer: refusals, JSON, and the files of the page by name."""

from __future__ import annotations

import secrets
import zlib
from hmac import compare_digest
from typing import Any

from msgspec import Struct

from holdfast.http1.heads import RequestHead
from holdfast.model.codec import digest
from holdfast.report.page.html import BUNDLE, build_shell
from holdfast.report.page.values import encode_json

JSON = "application/json; charset=utf-8"
SMALL = 4_096
"""Bodies below this size are not compressed."""


class WebReply(Struct, frozen=True):
    """Status, type and body."""

    status: int
    body: bytes
    type: str = JSON
    etag: str = ""
    """For a file: the browser may cache it, and asks whether it is still the same."""

    def compress(self) -> bytes:
        """Return the body compressed with gzip; equal bodies give equal bytes."""
        press = zlib.compressobj(4, wbits=31)
        return press.compress(self.body) + press.flush()


def build_json_reply(value: Any, status: int = 200) -> WebReply:
    return WebReply(status, encode_json(value))


def build_refusal(status: int, error: str, hint: str = "") -> WebReply:
    """Return an error, with what to do next."""
    return build_json_reply({"error": error, "hint": hint}, status)


# -- access control -------------------------------------------------------------------------------
METHODS = ("GET", "HEAD", "PUT")
OTHERS = ("cross-site", "same-site")
"""Values of Sec-Fetch-Site for a page of another site, or of another port of this machine."""
NOTHING = WebReply(404, b"not found\n", "text/plain; charset=utf-8")
"""The reply without a token: the same for every path."""


def create_token() -> str:
    """Create a random token of 192 bits."""
    return secrets.token_urlsafe(24)


class Gate(Struct, frozen=True):
    """The access control of one viewer."""

    token: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of this address. Any other belongs to a page whose name resolves here: DNS rebinding."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")

    def enter(self, head: RequestHead) -> str | WebReply:
        """Return the path below the token, query included; or why access is denied."""
        if head.get("host") not in self.hosts or len([1 for name, _ in head.headers if name.lower() == b"host"]) != 1:
            return build_refusal(
                403, "this is not the address of the viewer", "open the address that holdfast view printed"
            )
        first, _, rest = head.target.removeprefix("/").partition("/")
        inside = head.target.startswith("/") and f"/{first}/" == head.target[: len(first) + 2]
        # The comparison takes as long for a wrong token as for the right one, so its time reveals nothing.
        if not compare_digest(first.encode(), self.token.encode()) or not inside:
            return NOTHING
        if head.method not in METHODS:
            return build_refusal(405, f"{head.method} is not allowed", "use GET, HEAD or PUT")
        origin = head.get("origin")
        own = [f"http://{host}" for host in self.hosts]
        if (origin is not None and origin not in own) or (
            head.get("sec-fetch-site") in OTHERS and _is_data_request(rest)
        ):
            return build_refusal(
                403, "requested by a page of another site", "open the address that holdfast view printed"
            )
        return rest


def _is_data_request(rest: str) -> bool:
    """Return whether it requests data; a link to the page itself may be followed from anywhere."""
    return rest.partition("?")[0] != ""


BELOW = "static/"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FILES = ("page.css", "page.js", "icon.svg")
"""By name: a requested name is looked up here, and is never a path."""
_HEAD = f"""<title>Holdfast</title>
<link rel="icon" href="{BELOW}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{BELOW}page.css">"""
_MAIN = "<noscript><p>This page needs JavaScript. The report.html of each run can be read without it.</p></noscript>"


def read_static_file(name: str) -> WebReply | None:
    """Return a file of the page; None if there is none with that name."""
    if not name:
        body, suffix = f'<script src="{BELOW}page.js"></script>'.join(build_shell(_HEAD, _MAIN)).encode(), ".html"
    elif name.startswith(BELOW) and name.removeprefix(BELOW) in FILES:
        path = BUNDLE / name.removeprefix(BELOW)
        body, suffix = path.read_bytes(), path.suffix
    else:
        return None
    return WebReply(200, body, TYPES[suffix], etag=f'"{digest(body, 12)}"')
