"""The configuration reference, as Markdown: `python -m holdfast.spec.catalogue.reference > docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.model.capabilities import LACKS
from holdfast.model.codes import load_codes
from holdfast.protocols.check import CodesTrait
from holdfast.reading.fields import Field, get_keys
from holdfast.spec.catalogue.editors import find_sections, iter_checks, iter_service_types
from holdfast.spec.catalogue.schema import describe_type, format_default
from holdfast.spec.rules.fault_entry import FAMILIES
from holdfast.spec.rules.matrix import list_modes
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
    return "\n".join(_iter_lines()) + "\n"


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
    yield from _iter_section_lines("Keys of every invariant", RuleKeys)
    yield from _iter_plugin_lines("check", "[checks.md](checks.md)", iter_checks())
    for family in FAMILIES.values():
        yield f"## `{family.name}`\n"
        yield from _iter_section_lines("Keys of every entry", family.keys)
        yield from _iter_plugin_lines(family.selector, f"[faults.md](faults.md#{family.name})", list_modes(family.name))


def _iter_section_lines(title: str, kind: type) -> Iterator[str]:
    yield f"### {title}\n"
    words = (kind.__doc__ or "").strip().splitlines()
    yield (words[0] if words else "") + "\n"
    rows = [_format_row(field) for field in get_keys(kind)]
    if rows:
        yield "| key | type | default | meaning |\n|---|---|---|---|"
        yield from rows
        yield ""


def _iter_plugin_lines(selector: str, page: str, kinds: Iterable[tuple[str, type]]) -> Iterator[str]:
    """Yield the types of each plug-in's settings; the hand-written page explains them."""
    yield f"### Settings by {selector}\n\n{page} explains each.\n"
    yield f"| {selector} | settings |\n|---|---|"
    for name, kind in kinds:
        settings = "; ".join(f"`{field.key}`: {describe_type(field)}" for field in get_keys(kind)).replace("|", "\\|")
        yield f"| `{name}` | {settings} |"
    yield ""


def _format_row(field: Field) -> str:
    default = format_default(field.default)
    cells = (
        f"`{field.key}`",
        describe_type(field),
        "*required*" if field.required else f"`{default}`" if default else "",
        field.hint.description,
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def build_codes_page() -> str:
    """Return the Markdown page with every code, generated from `codes.toml`, the checks and the missing features."""
    tables = load_codes()
    givers: dict[str, list[str]] = {}
    meanings = dict(tables["findings"].codes)
    for name, check in iter_checks():
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
