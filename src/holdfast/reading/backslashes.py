"""Regexes whose backslashes were written twice."""

from __future__ import annotations

import re

_TWICE = r"\\\\(?=[dwsbDWSB.$^*+?()\[\]{}|/-])"


def undoubled(pattern: str) -> str:
    """The pattern with one backslash where two stand before a sign that one would escape."""
    return re.sub(_TWICE, r"\\", pattern)
