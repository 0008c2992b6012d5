"""The query of an address: values by name, with validation."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import UsageError

LONG = 2_000
"""Characters of one value."""


class AddressQuery:
    """The last value of each name."""

    def __init__(self, fields: Iterable[tuple[str, str]]) -> None:
        self._values = {name: value[:LONG] for name, value in fields}

    def get_text(self, name: str) -> str:
        """Return a text parameter; empty if it is missing."""
        return self._values.get(name, "")

    def get_number(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 0 to `most`; raise UsageError if it is not one."""
        text = self._values.get(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise UsageError(
                f"{name} is {text[:40]!r}, expected a whole number", hint="leave it out", code="argument-invalid"
            )
        return min(int(text), most)
