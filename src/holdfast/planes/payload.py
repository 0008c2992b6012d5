"""Whether anything of an attack's text stands in what arrived."""

from __future__ import annotations

import re

from holdfast.model.canary import canaries

PIECE = 16
"""Characters of a payload that must have come through together: a letter or two are no attack."""

_PLAIN = re.compile(r"[^\"'\\\x00-\x1f\x7f]+")
"""What reads the same in a text, in JSON and in what Python prints."""


def came_through(payload: str, shown: str) -> bool:
    """Whether a canary of the payload, or a piece of its words, is in what was shown."""
    return any(piece in shown for piece in _pieces(payload))


def _pieces(payload: str) -> list[str]:
    words = canaries(payload)
    for word in words:  # which differ from those of other attacks in their last letters alone
        payload = payload.replace(word, "\n")
    runs = _PLAIN.findall(payload)
    pieces = [run[at : at + PIECE] for run in runs for at in range(0, len(run) - PIECE + 1, PIECE)]
    return words + pieces or sorted(runs, key=len)[-1:] or [payload]
