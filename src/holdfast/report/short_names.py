"""Shortens names to a width and keeps them distinguishable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

from holdfast.report.safe import count_columns, make_visible, shorten


def shorten_names(names: Iterable[str], room: int) -> dict[str, str]:
    """Return each name in at most `room` columns, all different if there is room for … and a number.

    A name is cut at its end. If two would look the same, they are cut in the middle, so the difference stays visible;
    if that does not help, they end in a number.
    """
    spelled = {name: make_visible(name) for name in dict.fromkeys(names)}
    short: dict[str, str] = {}
    open_ = _accept_unique(spelled, str, short, room)
    if not open_:
        return short
    # From the most readable cut to the least: at the end, in the middle, before the first difference within a group,
    # and finally a number. Each step leaves the names that it made unique alone.
    for cut in (shorten, shorten_middle):
        open_ = _accept_unique(open_, partial(cut, room=room), short, room)
    for group in _group_by_prefix(open_, room):
        begin = _count_shared(min(group.values()), max(group.values()))
        left = _accept_unique(group, partial(_cut_before, begin=begin, room=room), short, room)
        used = set(short.values())
        for number, (name, text) in enumerate(left.items(), 1):
            short[name] = _add_number(text, number, room, used)
    return {name: short[name] for name in spelled}


def shorten_middle(text: str, room: int) -> str:
    """Return the text in at most `room` columns, cut with … in the middle: names often differ at their end."""
    if count_columns(text) <= room:
        return text
    if room < 3:
        return shorten(text, room)
    head = (room - 1) // 4
    return f"{_take_first(text, head)}…{_take_last(text, room - 1 - head)}"


def _accept_unique(
    names: dict[str, str], cut: Callable[[str], str], short: dict[str, str], room: int
) -> dict[str, str]:
    """Accept the names that this cut makes unique, and return the others."""
    candidates = {name: cut(text) for name, text in names.items()}
    times, used = Counter(candidates.values()), set(short.values())
    fit = {name: text for name, text in candidates.items() if times[text] == 1 and text not in used}
    short.update((name, text) for name, text in fit.items() if count_columns(text) <= room)
    return {name: text for name, text in names.items() if name not in short}


def _group_by_prefix(names: dict[str, str], room: int) -> list[dict[str, str]]:
    """Return the names in groups with a common beginning."""
    groups: dict[str, dict[str, str]] = {}
    for name, text in names.items():
        groups.setdefault(shorten(text, room), {})[name] = text
    return list(groups.values())


def _cut_before(text: str, begin: int, room: int) -> str:
    """Return the name's beginning, and the part where it differs from others."""
    if room < 5:
        return shorten(text, room)
    head = _take_first(text, (room - 1) // 4)
    return f"{head}…{shorten(text[max(begin, len(head)) :], room - 1 - count_columns(head))}"


def _add_number(text: str, number: int, room: int, used: set[str]) -> str:
    """Return the name's beginning with the first number, from this one on, that makes it unique."""
    for n in count(number):
        end = f"…{n}"
        numbered = _take_first(text, room - len(end)) + end
        if numbered not in used or len(end) > room:
            break
    used.add(numbered)
    return shorten(numbered, room)


def _count_shared(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _take_first(text: str, room: int) -> str:
    fitting: list[str] = []
    for char in text:
        room -= count_columns(char)
        if room < 0:
            break
        fitting.append(char)
    return "".join(fitting)


def _take_last(text: str, room: int) -> str:
    return _take_first(text[::-1], room)[::-1]


def join_names(names: Sequence[str], room: int, total: int = 0) -> str:
    """`a, b, … and 9 more`: as many of the names as fit, at least one, all different.

    `total` is the number of all names if `names` are only the first of them.
    """
    short = list(shorten_names(names[: max(1, room // 3)], max(12, room // 2)).values())
    total = max(total, len(names))
    for fit in range(len(short), 1, -1):
        text = ", ".join(short[:fit]) + _format_more(total - fit)
        if count_columns(text) <= room:
            return text
    rest = _format_more(total - 1)
    return "".join(shorten_middle(one, max(8, room - count_columns(rest))) + rest for one in short[:1])


def _format_more(left: int) -> str:
    return f", … and {left} more" if left else ""
