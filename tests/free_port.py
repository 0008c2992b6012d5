"""A port that nothing listens at, and that no test beside this one is given before it is used."""

from __future__ import annotations

import contextlib
import os
import socket
from itertools import count

_FIRST, _LAST = 15_000, 32_000
"""Below those that the kernel gives to who asks for any."""
_turns = count(os.getpid() * 61)


def free_port() -> int:
    """A port of this machine's own address; not the same twice in a row."""
    while True:
        port = _FIRST + next(_turns) % (_LAST - _FIRST)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
