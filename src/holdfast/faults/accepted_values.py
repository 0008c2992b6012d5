"""Finds changed values that the client accepts: a client whose tool declares a result schema rejects others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from holdfast.faults.values import Path, list_parts, replace_part
from holdfast.protocols.fault import FaultContext

TRIES = 64
"""Maximum number of changes to validate: each reads the complete value, and a reply may have thousands."""
NO_PLACE = "the tool declares a schema for its results, and no value that fits it can be put there"
_GAVE_UP = (
    f"the tool declares a schema for its results, and no value that fits it can be put in the first {TRIES} places"
)


def choose_fitting(value: Any, changed: Iterable[Any], ctx: FaultContext) -> Any:
    """Return the first change that the client accepts; the unchanged value if it accepts none."""
    others = (other for other in changed if other is not value)
    tried = False
    for other in islice(others, TRIES):
        if ctx.fits(other):
            return other
        tried = True
    if tried:
        ctx.idle = NO_PLACE if next(others, None) is None else _GAVE_UP
    return value


def change_each_text(value: Any, change: Callable[[str], str]) -> Iterator[Any]:
    """Yield the value with one of its texts changed: each in turn, longest first.

    Every field gets one turn before any gets a second. The rows of a list count as one field: a schema that rejects a
    text in one row rejects it in all.
    """
    texts = [(path, part) for path, part in list_parts(value) if isinstance(part, str) and path]
    texts.sort(key=lambda at: -len(at[1]))
    counts: Counter[Path] = Counter()
    turns = []
    for path, text in texts:
        place = tuple(None if isinstance(key, int) else key for key in path)
        turns.append((counts[place], path, text))
        counts[place] += 1
    for _, path, text in sorted(turns, key=lambda turn: turn[0]):
        yield replace_part(value, path, change(text))
