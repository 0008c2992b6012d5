"""A port that nothing listens at, and that no test beside this one is given before it is used."""

from __future__ import annotations

import os
import socket
from itertools import count

_FIRST, _LAST = 15_000, 32_000
"""Below those that the kernel gives to who asks for any."""
_turns = count(os.getpid() * 61)


def free_port() -> int:
    """A port of this machine's own address; not the same twice in a row."""
    for turn in _turns:
        port = _FIRST + turn % (_LAST - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("counting does not end")
