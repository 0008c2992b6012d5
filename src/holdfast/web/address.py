"""What an address of the viewer may contain: the ids of runs and trials, and a query with validation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

from holdfast.errors import UsageError
from holdfast.model.spec import Part

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


_PARTS = "|".join(get_args(Part))
_RUN = re.compile(rf"[0-9]{{1,12}}(?:/(?:{_PARTS}))?")
_TRIAL = re.compile(r"[0-9a-f]{1,64}")


def is_run_id(text: str) -> bool:
    """Return whether it is a run id: `0007`, or `0007/contract` for a part."""
    return _RUN.fullmatch(text) is not None


def is_trial_id(text: str) -> bool:
    return _TRIAL.fullmatch(text) is not None


def split_id(words: list[str]) -> tuple[str, list[str]]:
    """Return the run's id at the start of a path, and the rest; the id is empty if there is none."""
    for length in (2, 1):
        id = "/".join(words[:length])
        if len(words) >= length and is_run_id(id):
            return id, words[length:]
    return "", words
