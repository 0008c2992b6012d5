"""Takes secrets out of a folder: of what files hold, and of their names."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

MASK = b"[masked]"
REWRITTEN = 64_000_000
"""Bytes of a file that is still rewritten."""
COMMON = 1_000_000
"""Bytes of a text in which every spelling is looked for."""


def mask_files(folder: Path, secrets: Collection[bytes], mask: Callable[[str], str]) -> Iterator[str]:
    """Takes secrets out of every file and every name; a file that is too large to be rewritten goes.

    `mask` knows other spellings of a secret, too; it is asked where a file is a text of common size.
    """
    for at, folders, names in os.walk(folder, topdown=False) if secrets else ():
        for path in (_renamed(Path(at, name), secrets) for name in (*names, *folders)):
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                continue
            if path.stat().st_size > REWRITTEN:
                if _holds(path, secrets):
                    path.unlink()
                    yield f"{path.relative_to(folder)} is left out: it is large, and a secret is in it"
            else:
                _rewrite(path, secrets, mask)


def mask_dump(path: Path, secrets: Collection[bytes], mask: Callable[[str], str], *, text: bool) -> bool:
    """Takes secrets out of what a server wrote, so that another can still read it; False if one cannot be taken out.

    A mask is as long as its secret: in a file that is no text, sizes stand before what they count.
    """
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        for form in {form for secret in secrets for form in _escaped(secret)}:
            at = data.find(form)
            while at >= 0:
                data[at : at + len(form)] = MASK.ljust(len(form), b"*")[: len(form)]
                at = data.find(form, at + len(form))
    if path.stat().st_size > COMMON:
        return True
    before = path.read_bytes()
    if not text:
        return mask(before.decode("latin-1")) == before.decode("latin-1")
    path.write_text(mask(before.decode("utf-8", "surrogateescape")), "utf-8", "surrogateescape", newline="")
    return True


def _escaped(secret: bytes) -> tuple[bytes, ...]:
    """A secret as scripts for databases write it."""
    whole = secret.replace(b"\\", b"\\\\")
    doubled = (text.replace(b"'", b"''") for text in (secret, whole))
    return secret, whole, whole.replace(b"'", b"\\'").replace(b'"', b'\\"'), *doubled


def _holds(path: Path, secrets: Collection[bytes]) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        return any(seen.find(secret) >= 0 for secret in secrets)


def _rewrite(path: Path, secrets: Collection[bytes], mask: Callable[[str], str]) -> None:
    before = path.read_bytes()
    data = before
    for secret in secrets:
        data = data.replace(secret, MASK)
    if len(data) <= COMMON:
        with contextlib.suppress(UnicodeDecodeError):
            data = mask(data.decode()).encode()
    if data != before:
        mode = path.stat().st_mode
        path.chmod(0o600)
        path.write_bytes(data)
        path.chmod(mode)


def _renamed(path: Path, secrets: Collection[bytes]) -> Path:
    """Where it is now: a name with a secret in it is masked, a link that leads to such a name goes."""
    name = os.fsencode(path.name)
    for secret in secrets:
        name = name.replace(secret, MASK)
    if path.is_symlink() and any(secret in os.fsencode(os.readlink(path)) for secret in secrets):
        path.unlink()
        return path
    target = path.with_name(os.fsdecode(name))
    return path if target == path else path.replace(target)
