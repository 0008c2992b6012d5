"""The complete format: the JSON Schema for editors, and the reference as Markdown.

`python -m holdfast.spec.catalogue.reference > docs/configuration.md`
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin

import msgspec

from holdfast import plugins, service_kinds
from holdfast.model.capabilities import LACKS
from holdfast.model.codes import load_codes
from holdfast.model.spec import Aggregation, ToolRef
from holdfast.model.standards import MUTATIONS, StandardEntry, find_entries
from holdfast.model.world import CONTAINER
from holdfast.protocols.check import CodesTrait
from holdfast.reading.fields import Field, Schema, get_keys, parse_hint
from holdfast.spec.catalogue.plugin_page import PluginKind, PluginSetting, build_setting, iter_pages
from holdfast.spec.catalogue.schema import (
    build_properties,
    build_section_schema,
    build_selector,
    build_shared_refs,
    build_variant,
    get_first_line,
    list_required,
)
from holdfast.spec.rules.fault_entry import FAMILIES, FaultEntry
from holdfast.spec.rules.matrix import build_fault_definitions, build_fault_schema
from holdfast.spec.rules.rules import RuleEntry, RuleKeys
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ImageKeys, ServiceEntry, ServiceKeys


def iter_service_types() -> Iterator[tuple[str, type]]:
    """Yield every type that an entry may have, with the class that declares its keys."""
    for name in service_kinds.list_types():
        kind = service_kinds.find(name)
        if kind is not None:
            yield name, ImageKeys if name == CONTAINER else kind


def _build_service_entry(name: str, kind: type) -> Schema:
    required_keys = [*list_required(ServiceKeys), *list_required(kind), *(() if name == CONTAINER else ("type",))]
    return build_variant(
        {**build_properties(ServiceKeys), **build_properties(kind), "type": build_selector(name, kind)},
        required_keys,
        get_first_line(kind),
    )


def build_rule_schema(*, ids: bool, named: bool = False) -> Schema:
    """Return the schema of one rule: flat by its type, or with a nested check."""
    common = build_shared_refs(RuleKeys, RuleKeys.__name__)
    if named:
        del common["id"]
    required_keys = ["id"] if ids else []
    nested = build_variant(
        {**common, "check": {"$ref": "#/$defs/Check"}}, [*required_keys, "check"], "A rule with its check inside."
    )
    return {"anyOf": [nested, *_build_typed_checks(common, required_keys)]}


def _build_typed_checks(common: dict[str, Schema], required_keys: list[str]) -> list[Schema]:
    """Return an alternative for each check: the common keys, its type and its settings."""
    return [
        build_variant(
            {**common, "type": build_selector(name, kind), **build_shared_refs(kind, f"checks.{name}")},
            [*required_keys, "type", *list_required(kind)],
            get_first_line(kind),
        )
        for name, kind in plugins.list_plugins("checks")
    ]


DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = "urn:holdfast:spec"
"""A name, not an address: nobody has to host it."""


def build_json_schema() -> Schema:
    """Return the JSON Schema 2020-12 of a spec: every section, check and fault."""
    checks, services = list(plugins.list_plugins("checks")), list(iter_service_types())
    kinds = [File, *(kind for _, kind in (*checks, *services))]
    inside = [part for kind in kinds for part in find_sections(kind) if part is not kind]
    definitions: dict[str, Schema] = {kind.__name__: build_section_schema(kind) for kind in inside}
    definitions |= {
        "Rule": build_rule_schema(ids=True),
        "RunRule": build_rule_schema(ids=False),
        "NamedRule": build_rule_schema(ids=False, named=True),
        "Check": {"anyOf": _build_typed_checks({}, [])},
        "Service": {"anyOf": [_build_service_entry(name, kind) for name, kind in services]},
    }
    definitions |= {name: build_fault_schema(name) for name in FAMILIES}
    definitions[RuleKeys.__name__] = build_section_schema(RuleKeys)
    definitions |= {f"checks.{name}": build_section_schema(kind) for name, kind in checks}
    definitions |= build_fault_definitions()
    return {
        "$schema": DIALECT,
        "$id": NAME,
        "title": "Holdfast spec",
        **build_section_schema(File),
        "$defs": definitions,
    }


def find_sections(kind: type) -> dict[type, str]:
    """Return the type and every section type reachable from it, each with its place in the file."""
    # Breadth first, so that each section is listed at its shortest place in the file, and a section that occurs in
    # several places is described once.
    places: dict[type, str] = {kind: ""}
    waiting = [kind]
    while waiting:
        current = waiting.pop(0)
        for field in get_keys(current):
            for inner in _find_structs(field.hint.base):
                if inner not in places:
                    many = "[]" if get_origin(parse_hint(field.hint.base).base) in (tuple, list) else ""
                    places[inner] = f"{places[current]}.{field.key}{many}".lstrip(".")
                    waiting.append(inner)
    return places


def _find_structs(hint: Any) -> list[type]:
    base = parse_hint(hint).base
    if base in (RuleEntry, FaultEntry, ServiceEntry, ToolRef, Aggregation):  # they have formats of their own
        return []
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return [base]
    if get_origin(base) in (Union, types.UnionType, tuple, dict, list):
        return [struct for arg in get_args(base) if arg is not Ellipsis for struct in _find_structs(arg)]
    return []


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
    import sys

    sys.stdout.write(build_codes_page() if sys.argv[1:] == ["codes"] else build_reference())
