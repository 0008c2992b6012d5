"""Who may come in: the token in the path, a Host that is ours, no request of another site. Pure."""

from __future__ import annotations

import secrets
from hmac import compare_digest

from msgspec import Struct

from holdfast.http1.heads import RequestHead
from holdfast.web.web_reply import WebReply, refused

METHODS = ("GET", "HEAD", "PUT")
OTHERS = ("cross-site", "same-site")
"""Who asks, as browsers tell it: a page of another site, or of another port of this machine."""
NOTHING = WebReply(404, b"not found\n", "text/plain; charset=utf-8")
"""For whoever has no token: the same for every path."""


def new_token() -> str:
    """192 bits: nobody guesses it."""
    return secrets.token_urlsafe(24)


class Gate(Struct, frozen=True):
    """The door of one viewer."""

    token: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of this address. Any other is that of a page whose name leads here: DNS rebinding."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")

    def enter(self, head: RequestHead) -> str | WebReply:
        """What lies below the token, query included; or why nobody is let in."""
        if head.get("host") not in self.hosts or len([1 for name, _ in head.headers if name.lower() == b"host"]) != 1:
            return refused(403, "this address goes by another name", "open the address that holdfast view printed")
        first, _, rest = head.target.removeprefix("/").partition("/")
        inside = head.target.startswith("/") and f"/{first}/" == head.target[: len(first) + 2]
        if not compare_digest(first.encode(), self.token.encode()) or not inside:
            return NOTHING
        if head.method not in METHODS:
            return refused(405, f"{head.method} is not done here", "GET, HEAD and PUT are")
        origin = head.get("origin")
        own = [f"http://{host}" for host in self.hosts]
        if (origin is not None and origin not in own) or (head.get("sec-fetch-site") in OTHERS and _asks(rest)):
            return refused(403, "asked for by a page of another site", "open the address that holdfast view printed")
        return rest


def _asks(rest: str) -> bool:
    """Whether it is a question for data; a link to the page itself may be followed from anywhere."""
    return rest.partition("?")[0] != ""
