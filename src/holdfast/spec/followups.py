"""Problems that are better read together: errors that only follow from another one, and defaults without effect."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.model.spec import Problem
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader

_UNUSED = "lint-unused-default"


def unused_default(reader: Reader, node: Node, path: str) -> None:
    """Notes a key that has no effect where it is, and holds its default."""
    reader.warn(node, path, "", code=_UNUSED)


def joined(problems: Iterable[Problem]) -> list[Problem]:
    """The problems without those that go away with another one; all unused defaults are one warning."""
    listed = list(problems)
    meant = misspelt(listed)
    found = [p for p in listed if p.code != _UNUSED and (p.code != "missing-key" or p.path not in meant)]
    unused: dict[str, list[str]] = {}
    for p in listed:
        if p.code == _UNUSED:
            parent, _, key = p.path.rpartition(".")
            unused.setdefault(parent, []).append(key)
    if unused:
        first = next(p for p in listed if p.code == _UNUSED)
        places = "; ".join(f"{parent}: {', '.join(keys)}" for parent, keys in unused.items())
        hint = "another value would be an error or a warning of its own; you can remove them"
        found.append(replace(first, message=f"these defaults have no effect here: {places}", hint=hint))
    return found


def misspelt(problems: Iterable[Problem]) -> set[str]:
    """The paths of the keys that were probably meant by unknown ones."""
    found = set()
    for p in problems:
        if p.code == "unknown-key" and p.suggestion:
            parent = p.path.rpartition(".")[0]
            found.add(f"{parent}.{p.suggestion}" if parent else p.suggestion)
    return found
