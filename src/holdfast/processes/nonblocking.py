"""Reading what another process has written, without waiting."""

from __future__ import annotations

import os

DRAINS = 512
"""Reads after the end: bounded, as something that was left behind could write for ever."""


def read_now(fd: int) -> bytes | None:
    """What is there; b"" at the end; None if nothing is there yet."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None
    except OSError:
        return b""
