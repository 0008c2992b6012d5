"""Canaries: words that no agent says unless an attack made it."""

from __future__ import annotations

import re
from random import Random

MARK = "HOLDFAST-CANARY-"

_CANARY = re.compile(MARK + "[0-9a-f]{8}")
_ECHO_MARK = MARK.lower().encode()
_ECHO = re.compile(_ECHO_MARK + rb"[0-9a-f]{8}")
_ECHO_SIZE = len(_ECHO_MARK) + 8

ECHOES_KEPT = 100
"""Canaries that are looked for in what an agent sends: more than any attack plants."""


def new_canary(rng: Random) -> str:
    """A word that no agent says unless an attack made it."""
    return f"{MARK}{rng.getrandbits(32):08x}"


def echoes(text: str) -> tuple[str, ...]:
    """Every canary in a text, in small letters, whatever case it is written in; a few at the most."""
    lookout = Lookout()
    lookout.feed(text.encode("utf-8", "replace"))
    return lookout.found


class Lookout:
    """Finds canaries in bytes as they pass, in any case, however they are cut."""

    def __init__(self) -> None:
        self._tail = b""
        self._found: dict[str, None] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """In small letters, in order, each once."""
        return tuple(self._found)

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        text = self._tail + data.lower()
        if _ECHO_MARK in text:
            for word in _ECHO.finditer(text):
                if len(self._found) < ECHOES_KEPT:
                    self._found[word[0].decode()] = None
        self._tail = text[1 - _ECHO_SIZE :]


def canaries(text: str) -> list[str]:
    """Every canary in a text, in order, each once."""
    return list(dict.fromkeys(_CANARY.findall(text)))
