"""Words that say the same in an answer, and words that say the opposite: a group a line in the tables beside."""

from __future__ import annotations

from functools import cache

from holdfast.checks.text.folding import groups_in
from holdfast.checks.text.stems import stem


@cache
def _groups(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in groups_in("synonyms.toml", name))


@cache
def opposites(name: str) -> dict[str, frozenset[str]]:
    """By key of a word, the keys of its opposites."""
    groups = group_of(name)
    found: dict[str, frozenset[str]] = {}
    for line in groups_in("opposites.toml", name):
        sides = [{groups.get(stem(word, name), stem(word, name)) for word in side.split()} for side in line.split("/")]
        for side in sides:
            others = frozenset().union(*sides) - side
            found.update({word: found.get(word, frozenset()) | others for word in side})
    return found


@cache
def group_of(name: str) -> dict[str, str]:
    """By stem, the first word of its group; a phrase is written with `_`."""
    found: dict[str, str] = {}
    for group in _groups(name):
        for word in group:
            first, *rest = word.split("_")
            key = " ".join((stem(first, name), *rest))
            found.setdefault(key, f"={group[0]}")
    return found


@cache
def kin_of(name: str) -> dict[str, frozenset[str]]:
    """By stem, the first words of all groups that it is in."""
    found: dict[str, set[str]] = {}
    for group in _groups(name):
        for word in group:
            first, *rest = word.split("_")
            found.setdefault(" ".join((stem(first, name), *rest)), set()).add(f"={group[0]}")
    return {word: frozenset(groups) for word, groups in found.items()}


@cache
def written(name: str) -> frozenset[str]:
    """The words of all groups as they are written there."""
    return frozenset(word for group in _groups(name) for word in group)


@cache
def phrases(name: str) -> dict[str, int]:
    """By stem of the first word, how many words the longest phrase of a group has."""
    found: dict[str, int] = {}
    for word in (word for group in _groups(name) for word in group):
        first, *rest = word.split("_")
        first = stem(first, name)
        if rest:
            found[first] = max(found.get(first, 1), 1 + len(rest))
    return found
