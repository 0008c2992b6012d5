"""The page's own files: those of the package, by name, and no other."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.codec import digest
from holdfast.report.template import FOLDER as templates
from holdfast.web.web_reply import WebReply

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
BELOW = "static/"
SHARED = ("page.css", "matrix.css", "panel.css", "cases.css", "dom.js")
"""Files of the single-file page that this one uses as they are, below `static/report/`."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def static_file(name: str) -> WebReply | None:
    """A file of the page; None if it has none of that name."""
    path = _names().get(name)
    if path is None:
        return None
    body = path.read_bytes()
    return WebReply(200, body, TYPES[path.suffix], etag=f'"{digest(body, 12)}"')


def _names() -> dict[str, Path]:
    """By name. A name that is asked for is looked up here, and is never a path."""
    own = {f"{BELOW}{path.name}": path for path in FOLDER.iterdir() if path.suffix in TYPES and path.is_file()}
    shared = {f"{BELOW}report/{name}": templates / name for name in SHARED}
    return {"": FOLDER / INDEX, **own, **shared}
