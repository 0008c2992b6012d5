"""The page of a fault or check in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from holdfast.spec.catalogue.plugin_page import RULES, PluginPage, PluginSetting

_ROOM = 11
"""Columns of the words on the left."""


def page_lines(page: PluginPage, width: int) -> Iterator[str]:
    """One page: what, where, when, settings, an example, where to read on."""
    yield f"{page.section}: {page.name}"
    yield _wrapped(page.what, width, 2)
    yield ""
    yield _told("acts" if page.kind == "fault" else "reads", page.acts, width)
    yield _told("met" if page.kind == "fault" else "verdict", page.met, width)
    yield from _settings(page.settings, width)
    yield _told("also takes", ", ".join(setting.key for setting in page.common), width)
    for standard in page.standards:
        yield _told(standard.id, f"{standard.title} ({standard.list})", width, room=14)
    if page.see:
        yield _told("see", ", ".join(_command(other) for other in page.see), width)
    yield ""
    yield from (f"    {line}" for line in page.example.splitlines())


def _settings(settings: Sequence[PluginSetting], width: int) -> Iterator[str]:
    if not settings:
        yield _told("settings", "none of its own", width)
        return
    yield "  settings"
    for setting in settings:
        default = "required" if setting.required else f"default {setting.default}" if setting.default else "optional"
        yield _wrapped(f"{setting.key}: {setting.type}; {default}", width, 4)
        yield _wrapped(setting.meaning, width, 8)


def _command(other: str) -> str:
    """What shows the other page: by its name alone where that is enough."""
    section, _, name = other.partition(".")
    return f"checks {name}" if section == RULES else f"faults {other}"


def _told(word: str, text: str, width: int, *, room: int = _ROOM) -> str:
    start = f"  {word:<{room}} "
    return fill(text, width, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False)


def _wrapped(text: str, width: int, indent: int) -> str:
    pad = " " * indent
    return fill(text, width, initial_indent=pad, subsequent_indent=pad, break_long_words=False)
