"""Shortens long texts: leaves out their middle or their end."""

from __future__ import annotations

LIMIT = 200
"""Characters of a value in the ledger: enough to recognise it, small next to an answer."""


def shorten(text: str, limit: int = LIMIT) -> str:
    """Return the text, without its middle if it is too long."""
    if len(text) <= limit:
        return text
    half = (limit - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def get_beginning(text: str, limit: int = LIMIT) -> str:
    """Return the beginning of the text, on one line."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
