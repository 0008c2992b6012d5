"""Errors that only follow from another one: a misspelt key is not missing, too."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.spec import Problem


def without_followups(problems: Iterable[Problem]) -> list[Problem]:
    """The problems without those that go away with another one."""
    listed = list(problems)
    meant = misspelt(listed)
    return [p for p in listed if p.code != "missing-key" or p.path not in meant]


def misspelt(problems: Iterable[Problem]) -> set[str]:
    """The paths of the keys that were probably meant by unknown ones."""
    found = set()
    for p in problems:
        if p.code == "unknown-key" and p.hint.startswith("did you mean "):
            name = p.hint.removeprefix("did you mean ").rstrip("?")
            parent = p.path.rpartition(".")[0]
            found.add(f"{parent}.{name}" if parent else name)
    return found
