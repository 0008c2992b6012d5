"""Addresses of Unix sockets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 100
"""Bytes of a path that every system accepts as a socket's address: Linux takes 107, macOS 103."""


@contextmanager
def open_socket_path(folder: Path, name: str) -> Iterator[str]:
    """Yield the path at which to bind or connect a socket in a folder of any depth."""
    path = str(folder / name)
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    # The kernel limits the length of the address, not of the file's path: name the folder by an open descriptor.
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{at}/{name}"
    finally:
        os.close(at)
