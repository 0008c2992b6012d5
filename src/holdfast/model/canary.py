"""Canaries: words that no agent says unless an attack made it."""

from __future__ import annotations

import re
from random import Random

MARK = "HOLDFAST-CANARY-"

_CANARY = re.compile(MARK + "[0-9a-f]{8}")


def new_canary(rng: Random) -> str:
    """A word that no agent says unless an attack made it."""
    return f"{MARK}{rng.getrandbits(32):08x}"


def canaries(text: str) -> list[str]:
    """Every canary in a text, in order, each once."""
    return list(dict.fromkeys(_CANARY.findall(text)))
