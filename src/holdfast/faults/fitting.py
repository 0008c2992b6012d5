"""Values that the client takes: one whose tool declares a schema for its results refuses others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holdfast.faults.values import edited, parts, put
from holdfast.protocols import FaultContext

NO_PLACE = "the tool declares a schema for its results, and nothing that fits it can be put there"


def first_fitting(value: Any, changed: Iterable[Any], ctx: FaultContext) -> Any:
    """The first change that the client takes; the value itself if it takes none."""
    tried = False
    for other in changed:
        if other is value:
            continue
        if ctx.fits(other):
            return other
        tried = True
    if tried:
        ctx.idle = NO_PLACE
    return value


def by_text(value: Any, change: Callable[[str], str]) -> Iterator[Any]:
    """The value with one of its texts changed: each in turn, the longest first."""
    texts = [(path, part) for path, part in parts(value) if isinstance(part, str) and path]
    for path, text in sorted(texts, key=lambda at: -len(at[1])):
        yield edited(value, lambda data, path=path, text=text: put(data, path, change(text)))  # type: ignore[misc]
