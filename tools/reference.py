"""The pages of the documentation that come from the types: every key of a spec, and every code.

python tools/reference.py > docs/configuration.md
python tools/reference.py codes > docs/codes.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from holdfast import plugins
from holdfast.model.capabilities import LACKS
from holdfast.model.codes import load_codes
from holdfast.model.standards import MUTATIONS, StandardEntry, find_entries
from holdfast.protocols.check import CodesTrait
from holdfast.reading.fields import Field, get_keys
from holdfast.spec.catalogue.json_schema import find_sections, iter_service_types
from holdfast.spec.catalogue.plugin_page import PluginKind, PluginSetting, build_setting, iter_pages
from holdfast.spec.rules.fault_entry import FAMILIES
from holdfast.spec.rules.rules import RuleKeys
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ServiceKeys

_INTRO = """# Configuration

Every key of a spec, generated from the types that read the file. A spec is one YAML file. It may have a `contract:`
with a `chaos_matrix:`, a `task:` with a map of `invariants:`, or both.

- An unknown key, value or name is an error that shows its line and suggests the nearest name.
- A duration is a number of milliseconds, or text with a unit: `500ms`, `30s`, `5m`, `1h`.
- `${VAR}` and `${VAR:-default}` are replaced from the environment in `agent`, `agents`, `model`, `models`,
  `services`, `secrets`, `network`, `fixtures`, `setup`, `resources` and `base`, except in shell and SQL text. In
  other sections they are replaced only where a number, a duration, a boolean or a fixed word is expected, but not in
  `version`, `type` and `mode`.
- `{{ params.x }}` is a parameter of `parallelism.matrix`, `{{ secrets.X }}` an entry of `secrets`.
- *Reads only*: this version validates the section but cannot run it.
"""


def build_reference() -> str:
    """Return the complete page."""
    return "".join(f"{line}\n" for line in _iter_lines())


def _iter_lines() -> Iterator[str]:
    yield _INTRO
    yield "## Sections\n"
    for kind, place in sorted(find_sections(File).items(), key=lambda item: item[1]):
        yield from _iter_section_lines(f"`{place}`" if place else "The file", kind)
    yield "## `services`\n"
    yield from _iter_section_lines("Keys of every service", ServiceKeys)
    for name, kind in iter_service_types():
        yield from _iter_section_lines(f"`type: {name}`", kind)
        for part, place in find_sections(kind).items():
            if place:
                yield from _iter_section_lines(f"`services[].{place}`", part)
    yield "## Invariants\n"
    yield "[Checks](checks.md) says how each check decides.\n"
    yield from _iter_section_lines("Keys of every invariant", RuleKeys)
    yield from _iter_settings("Check settings", "check")
    yield "## Faults\n"
    yield "[Faults](faults.md) says what each fault does, and when it fires.\n"
    rows_by_family = {name: [_format_row(field) for field in get_keys(kind.keys)] for name, kind in FAMILIES.items()}
    on_calls = [rows for name, rows in rows_by_family.items() if name != "world_faults"]
    shared = [row for row in on_calls[0] if all(row in rows for rows in on_calls)]
    yield from _iter_table("Keys of every fault but `world_faults`", shared)
    for name, rows in rows_by_family.items():
        yield from _iter_table(f"`{name}`", [row for row in rows if row not in shared])
    yield from _iter_settings("Fault settings", "fault")
    yield "## Public lists\n"
    yield "Attacks, and the checks that look for them, have the ids of public lists. Reports show the ids.\n"
    yield "| name | kind | ids |\n|---|---|---|"
    for page in (*iter_pages("fault"), *iter_pages("check")):
        if page.standards:
            yield _format_ids(page.name, page.kind, page.standards)
    yield from (_format_ids(name, "mutation", find_entries(ids)) for name, ids in MUTATIONS.items())


def _iter_section_lines(title: str, kind: type) -> Iterator[str]:
    words = (kind.__doc__ or "").strip().splitlines()
    yield from _iter_table(title, [_format_row(field) for field in get_keys(kind)], words[0] if words else "")


def _iter_table(title: str, rows: Sequence[str], words: str = "") -> Iterator[str]:
    yield f"### {title}\n"
    if words:
        yield words + "\n"
    if rows:
        yield "| key | type | default | meaning |\n|---|---|---|---|"
        yield from rows
        yield ""


def _iter_settings(title: str, kind: PluginKind) -> Iterator[str]:
    """Yield one table with the settings of every check or fault."""
    yield f"### {title}\n"
    yield f"| {kind} | key | type | default | meaning |\n|---|---|---|---|---|"
    for page in iter_pages(kind):
        name = page.name if kind == "check" else f"{page.section}.{page.name}"
        for setting in page.settings:
            yield f"| `{name}` {_format_setting(setting)}"
    yield ""


def _format_ids(name: str, kind: str, entries: Iterable[StandardEntry]) -> str:
    ids = ", ".join(f"[{entry.id} {entry.title}]({entry.url})" for entry in entries)
    return f"| `{name}` | {kind} | {ids} |"


def _format_row(field: Field) -> str:
    return _format_setting(build_setting(field))


def _format_setting(setting: PluginSetting) -> str:
    default = "*required*" if setting.required else f"`{setting.default}`" if setting.default else ""
    cells = (f"`{setting.key}`", setting.type, default, setting.meaning)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def build_codes_page() -> str:
    """Return the Markdown page with every code, generated from `codes.toml`, the checks and the missing features."""
    tables = load_codes()
    givers: dict[str, list[str]] = {}
    meanings = dict(tables["findings"].codes)
    for name, check in plugins.list_plugins("checks"):
        for code, meaning in check.codes.items() if isinstance(check, CodesTrait) else ():
            meanings.setdefault(code, meaning)
            givers.setdefault(code, []).append(f"`{name}`")
    rows: dict[str, list[tuple[str, ...]]] = {
        **{name: [(code, meaning) for code, meaning in table.codes.items()] for name, table in tables.items()},
        "findings": [(code, meaning, ", ".join(givers.get(code, ()))) for code, meaning in meanings.items()],
        "lacks": [(code, lack.feature or "several", lack.why) for code, lack in LACKS.items()],
    }
    lines: list[str] = []
    for name, table in tables.items():
        lines += [table.intro, *("| `{}` | {} |".format(row[0], " | ".join(row[1:])) for row in sorted(rows[name])), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(build_codes_page() if sys.argv[1:] == ["codes"] else build_reference())
