"""Regexes whose backslashes were written twice."""

from __future__ import annotations

import re

_TWICE = re.compile(r"\\\\(?=[dwsbDWSB.$^*+?()\[\]{}|/-])")


def undoubled(pattern: str) -> str:
    """The pattern with one backslash where two stand before a sign that one would escape."""
    return _TWICE.sub(r"\\", pattern)
