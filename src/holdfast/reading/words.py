"""The words of messages: actual value, expected value, and suggestion; and doubled backslashes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.model.shorten import shorten
from holdfast.reading.node import Node

_HIDDEN_FROM = 6
"""A shorter text cannot be a secret."""
_LONGEST_WORD = 100
"""Characters of a name that are compared."""
_SHOWN = 12
"""Known names listed in a hint: more than a line of them helps nobody."""


def describe(node: Node) -> str:
    """Return the value in a few words."""
    if node.reference:
        only = re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", node.reference)
        where = f"the variable {only[1]}" if only and only[2] != node.text else node.reference
        if node.kind != "text":
            return f"{node.text} in {where}"
        if len(node.text) >= _HIDDEN_FROM:
            return f"text of {len(node.text)} characters in {where}"
        return f"{node.text!r} in {where}" if node.text else f"nothing in {where}"
    if node.kind == "null":
        return "nothing"
    if node.kind == "bool":
        return str(node.value).lower()
    if node.kind in ("int", "float"):
        return f"the number {shorten(node.text, 40)}"
    if node.kind == "text":
        return f"the text {shorten(node.text, 40)!r}"
    return f"a {node.kind}" if node.items or node.pairs else f"an empty {node.kind}"


def find_near_name(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant: a misspelt one, or one with a word more or less."""
    # Reversed, so that of two names that fold to the same the first one of the list is suggested.
    names = {_fold(name): name for name in reversed(list(known))}
    if meant := find_misspelt(word, names.values()):
        return meant
    wanted = _fold(word)
    related = [name for name in names if _is_part(wanted, name) or _is_part(name, wanted)]
    return names[min(related, key=len)] if related else None


def _is_part(part: str, name: str) -> bool:
    """Return whether the part is words of the name, like `timeout` of `timeout_ms`, or its prefix, like `stop`."""
    return len(part) > 2 and (set(part.split("_")) < set(name.split("_")) or (len(part) > 3 and name.startswith(part)))


def find_misspelt(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from the word by a few letters."""
    from rapidfuzz.distance import OSA  # only a file with a mistake needs it

    names = {_fold(name): name for name in known}
    wanted = _fold(word[:_LONGEST_WORD])
    closest = min(names, key=lambda name: OSA.distance(wanted, name), default="")
    # In a short word only few letters may be wrong: `after` is three letters from `gate`, and means something else.
    return names[closest] if closest and OSA.distance(wanted, closest) <= min(len(wanted) // 4 + 1, 3) else None


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")


def suggest_name(word: str, known: Iterable[str], *, label: str = "known") -> str:
    """Return a hint: the suggestion, otherwise the known names."""
    return suggest(word, known, label=label)[1]


def suggest(word: str, known: Iterable[str], *, label: str = "known") -> tuple[str, str]:
    """Return the suggestion, empty if there is none, and the hint: the suggestion, otherwise the known names."""
    options = list(known)
    miss = find_near_name(word, options)
    if miss is not None and miss != word:
        return miss, f"did you mean {miss}?"
    return "", f"{label}: {join_names(options)}" if options else ""


def join_names(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    options = list(names)
    more = f", and {len(options) - _SHOWN} more" if len(options) > _SHOWN else ""
    return ", ".join(options[:_SHOWN]) + more


def format_plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_LETTERS, _SIGNS = "dwsbDWSB", r".$^*+?()\[\]{}|/-"
_TWICE = rf"(?<!\\)\\\\(?=[{_LETTERS}{_SIGNS}])"
_SURELY_TWICE = re.compile(rf"(?<!\\)\\\\(?:[{_LETTERS}](?![A-Za-z])|[{_SIGNS}])")
r"""Excludes `C:\\Windows` and `C:\\dir`: a letter that begins a word may follow a real backslash."""
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_LOST_IN_SET = re.compile(r"\\\\[dwsDWS]")


def undouble_backslashes(pattern: str) -> str:
    """Return the pattern with one backslash where two precede a character that one would escape."""
    return re.sub(_TWICE, r"\\", pattern)


def is_doubled(pattern: str) -> bool:
    """Return whether the pattern certainly looks for backslashes that were meant as escapes."""
    # In a set, `[\\$]` still has the `$`, and `[\\]` is how a backslash itself is written. `[\\d]` has lost its digits.
    sets = _SET.findall(pattern)
    return any(map(_LOST_IN_SET.search, sets)) or _SURELY_TWICE.search(_SET.sub("x", pattern)) is not None
