"""Plug-ins from the registry in a terminal: a list of a kind, or the pages of one name."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast import plugins
from holdfast.errors import UsageError
from holdfast.spec.catalogue.plugin_page import (
    SECTIONS,
    PluginKind,
    PluginPage,
    PluginSetting,
    pages,
    pages_named,
    registry_of,
    sections_of,
)


def show(kind: PluginKind, name: str | None, *, as_json: bool) -> None:
    """All of a kind, each section under its heading; or all that is known of one."""
    found = list(pages(kind)) if name is None else _named(kind, name)
    if as_json:
        from holdfast.model.codec import encode

        sys.stdout.write(encode([_row(page) for page in found] if name is None else found).decode() + "\n")
    elif name is None:
        print("\n".join(_listed(found)))
    else:
        from holdfast.cli.plugin_text import page_lines
        from holdfast.cli.screen import width

        columns = min(width(sys.stdout), 100)
        print("\n\n".join("\n".join(page_lines(page, columns)) for page in found))


def _named(kind: PluginKind, name: str) -> list[PluginPage]:
    found = pages_named(kind, name)
    if found:
        return found
    from holdfast.reading.words import near

    names = dict.fromkeys(name for section in sections_of(kind) for name in plugins.names(registry_of(section)))
    miss = near(name.rpartition(".")[2], names)
    hint = f"did you mean {miss}?" if miss else f"holdfast {kind}s lists them all"
    other: PluginKind = "check" if kind == "fault" else "fault"
    if pages_named(other, name):
        hint = f"it is a {other}: holdfast {other}s {name}"
    raise UsageError(f"there is no {kind} {name!r}", hint=hint)


def _listed(found: list[PluginPage]) -> Iterator[str]:
    for section in dict.fromkeys(page.section for page in found):
        rows = [page for page in found if page.section == section]
        yield f"{section}: {SECTIONS[section]}"
        room = max(len(page.name) for page in rows)
        for page in rows:
            settings = f"  [{', '.join(map(_short, page.settings))}]" if page.settings else ""
            yield f"  {page.name:<{room}}  {page.what}{settings}"
        yield ""


def _row(page: PluginPage) -> dict[str, object]:
    settings = [_short(setting) for setting in page.settings]
    return {"name": page.name, "family": registry_of(page.section), "what": page.what, "settings": settings}


def _short(setting: PluginSetting) -> str:
    if setting.required:
        return f"{setting.key}*"
    plain = setting.default and "," not in setting.default
    return f"{setting.key}={setting.default}" if plain else setting.key
