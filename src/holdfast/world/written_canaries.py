"""Canaries in what the agent of an attack wrote: the files it changed, the tables of databases it wrote to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.model.canary import Lookout, echoes
from holdfast.model.world import WrittenCanaries
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.protocols.service import Database
from holdfast.world.file_texts import opened
from holdfast.world.kept_world import tables_of

_FILE_SIZE = 10_000_000
"""Bytes of one file that are read."""
_ROWS = 100_000
"""Rows of one table that are read."""
_PIECE = 65_536
_CACHES = ("__pycache__", ".git", ".pytest_cache")
"""Folders that programs write for themselves, in formats of their own: what cannot be read there hides nothing."""


def in_file(sandbox: Sandbox, change: FileChange) -> WrittenCanaries:
    """What is in a file that was made or changed. No link is followed."""
    if change.op == "deleted":
        return WrittenCanaries()
    try:
        path = sandbox.find(change.path)
    except (HoldfastError, OSError):
        return WrittenCanaries()  # a link that leaves the workspace: it has no content of its own
    if path is None:
        return WrittenCanaries()
    cached = any(part in _CACHES for part in change.path.split("/"))
    fd = opened(path)
    if fd is None:  # an agent may have locked a file of its own: nobody knows what is in it
        return WrittenCanaries(unread=_is_regular(path) and not cached)
    with os.fdopen(fd, "rb") as file:
        data = file.read(_PIECE)
        lookout = Lookout(packed=data[:2] == b"\x1f\x8b")
        while data and file.tell() <= _FILE_SIZE:
            lookout.feed(data)
            data = file.read(_PIECE)
    return WrittenCanaries(lookout.found, (bool(data) or not lookout.legible) and not cached)


def _is_regular(path: Path) -> bool:
    """Also where a folder on the way to it is locked, and nobody can tell."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


async def in_database(database: Database) -> WrittenCanaries:
    """What is in the tables of a database."""
    try:
        tables = await tables_of(database, _ROWS)
    except (HoldfastError, TimeoutError):
        return WrittenCanaries(unread=True)
    texts = (str(value) for table in tables.values() for row in table.rows for value in row if value is not None)
    found = dict.fromkeys(word for text in texts for word in echoes(text))
    return WrittenCanaries(tuple(found), any(table.count > len(table.rows) for table in tables.values()))
