"""holdfast faults | checks: plug-ins from the registry, as a list of a kind or as the pages of one name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from textwrap import fill

import click

from holdfast import plugins
from holdfast.cli import options as shared
from holdfast.cli.screen import get_width
from holdfast.errors import UsageError
from holdfast.faults import profiles
from holdfast.model.codec import encode
from holdfast.reading.words import find_near_name
from holdfast.spec.catalogue.plugin_page import (
    RULES,
    SECTIONS,
    PluginKind,
    PluginPage,
    PluginSetting,
    find_pages,
    get_registry,
    iter_pages,
    list_sections,
)

_ROOM = 11
"""Width of the label column."""


def format_page(page: PluginPage, width: int) -> Iterator[str]:
    """Format a plug-in's page: what it does, where and when it acts, settings, an example and related pages."""
    yield f"{page.section}: {page.name}"
    yield _wrap_text(page.what, width, 2)
    yield ""
    yield _format_field("acts" if page.kind == "fault" else "reads", page.acts, width)
    yield _format_field("met" if page.kind == "fault" else "verdict", page.met, width)
    yield from _format_settings(page.settings, width)
    yield _format_field("also takes", ", ".join(setting.key for setting in page.common), width)
    for standard in page.standards:
        yield _format_field(standard.id, f"{standard.title} ({standard.list})", width, room=14)
    if page.see:
        see = (other.partition(".") for other in page.see)
        commands = [f"checks {name}" if section == RULES else f"faults {section}.{name}" for section, _, name in see]
        yield _format_field("see", ", ".join(commands), width)
    yield ""
    yield from (f"    {line}" for line in page.example.splitlines())


def _format_settings(settings: Sequence[PluginSetting], width: int) -> Iterator[str]:
    if not settings:
        yield _format_field("settings", "none of its own", width)
        return
    yield "  settings"
    for setting in settings:
        default = "required" if setting.required else f"default {setting.default}" if setting.default else "optional"
        yield _wrap_text(f"{setting.key}: {setting.type}; {default}", width, 4)
        yield _wrap_text(setting.meaning, width, 8)


def _format_field(word: str, text: str, width: int, *, room: int = _ROOM) -> str:
    start = f"  {word:<{room}} "
    return fill(text, width, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False)


def _wrap_text(text: str, width: int, indent: int) -> str:
    pad = " " * indent
    return fill(text, width, initial_indent=pad, subsequent_indent=pad, break_long_words=False)


def show(kind: PluginKind, name: str | None, *, as_json: bool) -> None:
    """Print all plug-ins of a kind under section headings, or the pages of one name."""
    pages = list(iter_pages(kind)) if name is None else _find_pages(kind, name)
    if as_json:
        sys.stdout.write(encode([_build_row(page) for page in pages] if name is None else pages).decode() + "\n")
    elif name is None:
        print("\n".join(_list_pages(pages)))
    else:
        columns = min(get_width(sys.stdout), 100)
        print("\n\n".join("\n".join(format_page(page, columns)) for page in pages))


def _find_pages(kind: PluginKind, name: str) -> list[PluginPage]:
    pages = find_pages(kind, name)
    if pages:
        return pages
    names = dict.fromkeys(name for section in list_sections(kind) for name in plugins.list_names(get_registry(section)))
    miss = find_near_name(name.rpartition(".")[2], names)
    hint = f"did you mean {miss}?" if miss else f"holdfast {kind}s lists them all"
    other: PluginKind = "check" if kind == "fault" else "fault"
    if find_pages(other, name):
        hint = f"it is a {other}: holdfast {other}s {name}"
    raise UsageError(f"there is no {kind} {name!r}", hint=hint, code="name-unknown")


def _list_pages(pages: list[PluginPage]) -> Iterator[str]:
    for section in dict.fromkeys(page.section for page in pages):
        rows = [page for page in pages if page.section == section]
        yield f"{section}: {SECTIONS[section]}"
        room = max(len(page.name) for page in rows)
        for page in rows:
            settings = f"  [{', '.join(map(_format_setting, page.settings))}]" if page.settings else ""
            yield f"  {page.name:<{room}}  {page.what}{settings}"
        yield ""


def _build_row(page: PluginPage) -> dict[str, object]:
    settings = [_format_setting(setting) for setting in page.settings]
    return {"name": page.name, "family": get_registry(page.section), "what": page.what, "settings": settings}


def _format_setting(setting: PluginSetting) -> str:
    if setting.required:
        return f"{setting.key}*"
    plain = setting.default and "," not in setting.default
    return f"{setting.key}={setting.default}" if plain else setting.key


@click.command(name="faults")
@click.argument("name", required=False, shell_complete=shared.complete_from("faults"))
@shared.as_json
def faults_command(name: str | None, as_json: bool) -> None:
    """List every fault with its settings (* required) and the built-in profiles, or describe one.

    \b
      holdfast faults
      holdfast faults lost_reply
      holdfast faults llm_faults.timeout
      holdfast faults --json
    """

    show("fault", name, as_json=as_json)
    if as_json or name is not None:
        return
    print("Every fault also takes probability, after_calls, times, every, on_call, match;")
    print("those of the world take after_ms or on_event instead. holdfast faults NAME describes one in full.\n")
    print("profiles: --profile NAME, or `profile:` in a scenario")
    names = profiles.list_profiles()
    for profile in names:
        description = str(profiles.load_profile(profile).get("description", "")).strip()
        print(f"  {profile:<{max(map(len, names))}}  {description}")


@click.command(name="checks")
@click.argument("name", required=False, shell_complete=shared.complete_from("checks"))
@shared.as_json
def checks_command(name: str | None, as_json: bool) -> None:
    """List every check that a rule can use, with its settings (* required), or describe one.

    \b
      holdfast checks
      holdfast checks side_effect_once
      holdfast checks --json
    """

    show("check", name, as_json=as_json)
    if not as_json and name is None:
        print("Every rule also takes severity, when, negate, probes, over, replica_aggregation, weight, gate.")
        print("holdfast checks NAME describes one in full.")
