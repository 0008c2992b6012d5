"""Takes secrets out of a folder: of what files hold, and of their names."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from holdfast.world.hidden_secrets import CannotMask, Hidden

REWRITTEN = 64_000_000
"""Bytes of a file that is still rewritten."""


def mask_files(folder: Path, hidden: Hidden) -> Iterator[str]:
    """Takes secrets out of every file and every name; a file that cannot be rewritten goes, and that is told."""
    for at, folders, names in os.walk(folder, topdown=False) if hidden.values else ():
        for path in (_renamed(Path(at, name), hidden) for name in (*names, *folders)):
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                continue
            why = _masked(path, hidden)
            if why:
                path.unlink()
                yield f"{path.relative_to(folder)} is left out: {why}"


def mask_dump(path: Path, hidden: Hidden, *, text: bool) -> None:
    """Takes secrets out of what a server wrote, so that another can still read it; CannotMask if one would stay.

    A mask is as long as its secret: in a file that is no text, sizes stand before what they count.
    """
    if not path.stat().st_size or not hidden.values:
        return
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        hidden.overwrite(data, text=text)
        if not hidden.spelled_in(data):
            return
    if not text:
        raise CannotMask("a secret stands in it in a form that cannot be masked")
    masked = path.with_name(f"{path.name}.masked")
    try:
        masked.touch(mode=0o600)
        with path.open("rb") as script, masked.open("wb") as to:
            to.writelines(hidden.masked(script))
        masked.replace(path)
    finally:
        masked.unlink(missing_ok=True)


def _masked(path: Path, hidden: Hidden) -> str:
    """Rewrites a file without secrets; why not, if that cannot be done."""
    if path.stat().st_size > REWRITTEN:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
            return "it is large, and a secret is in it" if hidden.spelled_in(seen) else ""
    before = path.read_bytes()
    try:
        data = b"".join(hidden.masked(BytesIO(hidden.plain(before))))
    except CannotMask as refused:
        return str(refused)
    if data != before:
        mode = path.stat().st_mode
        path.chmod(0o600)
        path.write_bytes(data)
        path.chmod(mode)
    return ""


def _renamed(path: Path, hidden: Hidden) -> Path:
    """Where it is now: a name with a secret in it is masked, a link that leads to such a name goes."""
    if path.is_symlink() and any(value in os.fsencode(os.readlink(path)) for value in hidden.values):
        path.unlink()
        return path
    target = path.with_name(os.fsdecode(hidden.plain(os.fsencode(path.name))))
    return path if target == path else path.replace(target)
