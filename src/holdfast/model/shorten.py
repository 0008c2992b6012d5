"""Long texts, shortened: without their middle, or without their end. Pure."""

from __future__ import annotations

LIMIT = 200
"""Characters of a value that the ledger keeps: enough to recognise it, small next to an answer."""


def shorten(text: str, limit: int = LIMIT) -> str:
    """The text with its middle left out if it is too long."""
    if len(text) <= limit:
        return text
    half = (limit - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def beginning(text: str, limit: int = LIMIT) -> str:
    """The beginning of the text, on one line."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
