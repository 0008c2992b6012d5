"""The page's own files: those of the bundle, by name, and no other."""

from __future__ import annotations

from holdfast.model.codec import digest
from holdfast.report.page.html import BUNDLE, build_shell
from holdfast.web.web_reply import WebReply

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
_MAIN = "<noscript><p>This page needs scripts. The report.html of each run can be read without.</p></noscript>"


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
