"""Distinguishes what a run wrote from later changes to its files.

An agent without a sandbox has the user's rights: it can write where the run does. While it runs, nothing is judged from
the files. When it is gone, they are restored to what the run wrote, and sealed. Later changes are detected.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

SIZE = 16
_READ = 1 << 20

PUT_BACK = "something else wrote to it during the run; it was put back as the run wrote it"
LOST = "another program changed it during the run; the verdicts hold, but the trials shown may be forged"
NOT_SEALED = "not sealed: the run was killed or its disk was full, so changes to its files cannot be detected"
NOT_SEALED_YET = "not sealed yet: the run is still being written, so changes to its files cannot be detected"


class Seal(Struct, frozen=True):
    """A file as the run wrote it."""

    lines: int
    digest: str


def compute_seal(path: Path) -> Seal | None:
    """Return the seal for a file's current content; None if it does not exist."""
    if not path.is_file():
        return None
    digest, lines = blake2b(digest_size=SIZE), 0
    with open(path, "rb") as file:
        while data := file.read(_READ):
            digest.update(data)
            lines += data.count(b"\n")
    return Seal(lines, digest.hexdigest())
