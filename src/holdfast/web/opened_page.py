"""Opens the page in the user's browser, without revealing its address to other users of the machine.

Everybody can read a program's arguments (`ps`). So the browser gets a file that only the user may read and that
redirects to the address.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from tempfile import mkdtemp

HOUR_S = 3600.0
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Holdfast</title>
<a href="{url}">Holdfast</a>
"""


@contextmanager
def open_page(url: str, folder: Path) -> Iterator[None]:
    """Open the address; the redirecting file is removed afterwards. Without a browser, nothing happens."""
    _remove_old(folder)
    try:
        place = Path(mkdtemp(prefix="view-", dir=folder if folder.is_dir() else None))
    except OSError:
        yield
        return
    page = place / "open.html"
    try:
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(_PAGE.format(url=escape(url)))
        threading.Thread(target=_open, args=(page.as_uri(),), daemon=True).start()
        yield
    finally:
        with suppress(OSError):
            page.unlink(missing_ok=True)
            place.rmdir()


def _remove_old(folder: Path) -> None:
    """Remove files that killed viewers left: a browser reads its file within the hour."""
    for page in folder.glob("view-*/open.html"):
        with suppress(OSError):
            if time.time() - page.stat().st_mtime > HOUR_S:
                page.unlink()
                page.parent.rmdir()


def _open(address: str) -> None:
    """Open the address, but not in a text browser, which would take over the terminal."""
    import webbrowser

    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        in_terminal = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
            browser, webbrowser.BackgroundBrowser
        )
        if not in_terminal or os.environ.get("BROWSER"):
            browser.open(address)
