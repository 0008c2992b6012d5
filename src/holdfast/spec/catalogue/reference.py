"""The configuration reference, as Markdown: `python -m holdfast.spec.catalogue.reference > docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.capabilities import LACKS
from holdfast.model.error_codes import ERROR_CODES
from holdfast.model.run_warning import WARNINGS
from holdfast.model.verdict import CODES
from holdfast.protocols.check import CodesTrait
from holdfast.reading.fields import Field, keys_of
from holdfast.spec.catalogue.editors import checks, sections, service_types
from holdfast.spec.catalogue.schema import default_words, type_words
from holdfast.spec.rules.fault_entry import FAMILIES
from holdfast.spec.rules.matrix import modes
from holdfast.spec.rules.rules import RuleKeys
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ServiceKeys

_INTRO = """# Configuration

A spec is one YAML file. Both spellings, `contract:` with a `chaos_matrix:` and `task:` with a map of
`invariants:`, may be mixed in it. This page is made from the types that read the file.

- An unknown key, value or name is an error, with its line and the nearest known name.
- An integer duration is in ms; text has a unit: `500ms`, `30s`, `5m`, `1h`.
- `${VAR}` and `${VAR:-default}` are read from the environment in `agent`, `agents`, `model`, `models`, `services`,
  `secrets`, `network`, `fixtures`, `setup`, `resources` and `base`, shell and SQL text excepted; and in any section
  where a number, a duration, true or false, or one of some words is expected, but not for `version`, `type` and `mode`.
  Elsewhere, as in prompts and patterns, a dollar is a dollar.
- `{{ params.x }}` stands for a parameter of `parallelism.matrix`, `{{ secrets.X }}` for an entry of `secrets`.
- *Reads only*: this release checks the section and refuses a run that needs it.
"""


def reference() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRO
    yield "## Sections\n"
    for kind, place in sorted(sections(File).items(), key=lambda item: item[1]):
        yield from _section(f"`{place}`" if place else "The file", kind)
    yield "## `services`\n"
    yield from _section("Keys of every service", ServiceKeys)
    for name, kind in service_types():
        yield from _section(f"`type: {name}`", kind)
        for part, place in sections(kind).items():
            if place:
                yield from _section(f"`services[].{place}`", part)
    yield "## Invariants\n"
    yield from _section("Keys of every invariant", RuleKeys)
    for name, kind in checks():
        yield from _section(f"Check `{name}`", kind)
    for family in FAMILIES.values():
        yield f"## `{family.name}`\n"
        yield from _section("Keys of every entry", family.keys)
        for mode, kind in modes(family.name):
            yield from _section(f"`{mode}`", kind)


def _section(title: str, kind: type) -> Iterator[str]:
    yield f"### {title}\n"
    words = (kind.__doc__ or "").strip().splitlines()
    yield (words[0] if words else "") + "\n"
    rows = [_row(field) for field in keys_of(kind)]
    if rows:
        yield "| key | type | default | meaning |\n|---|---|---|---|"
        yield from rows
        yield ""


def _row(field: Field) -> str:
    default = default_words(field.default)
    cells = (
        f"`{field.key}`",
        type_words(field),
        "*required*" if field.required else f"`{default}`" if default else "",
        field.hint.description,
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


_CODES_INTRO = """# Codes

## Codes of findings

Every verdict that is not a pass has a code, and often a key: the values that tell one cause from another, such as the
tool, the field or the exit code. `report.json` has both, JUnit has the code as `type`, SARIF under `properties`. Rely
on codes in scripts: reasons are for people, and their wording changes. Failures with the same rule, outcome, code and
key are reported as one cause; so are all rules that one crash, timeout or other bad ending left nothing to judge. Texts
that are not ours (exceptions, stderr, what a script said) stand in keys as a digest.

| code | meaning | from |
|---|---|---|"""

_WARNINGS_INTRO = """
## Codes of warnings

A warning of a run has a code, too. `report.json` has `warnings` as `[{code, text}]`, JUnit has the code in the name of
the property (`warning.stateful`), SARIF under `properties`. A warning about the spec file has the code that
`holdfast validate --json` prints; these are the others.

| code | meaning |
|---|---|"""


_LACKS_INTRO = """
## Codes of missing features

What a machine, a backend or an agent cannot do. `report.json` has these codes under `isolation`; where a sandbox cannot
be made at all, the command ends with one of them as its error code.

| code | feature | why |
|---|---|---|"""

_ERRORS_INTRO = """
## Codes of errors

When a command cannot do its work, it prints `error: message  [code]`. With `--json`, the code is in `errors[].code`.
An error in the spec file has the code that `holdfast validate` prints after its message; these are the others.

| code | meaning |
|---|---|"""


def codes_page() -> str:
    """Every code of a finding, from the checks themselves, of a warning of a run and of an error."""
    found: dict[str, tuple[str, list[str]]] = {code: (meaning, []) for code, meaning in CODES.items()}
    for name, check in checks():
        if isinstance(check, CodesTrait):
            for code, meaning in check.codes.items():
                found.setdefault(code, (meaning, []))[1].append(f"`{name}`")
    rows = [f"| `{code}` | {meaning} | {', '.join(names)} |" for code, (meaning, names) in sorted(found.items())]
    warnings = [f"| `{code}` | {meaning} |" for code, meaning in sorted(WARNINGS.items())]
    errors = [f"| `{code}` | {meaning} |" for code, meaning in sorted(ERROR_CODES.items())]
    missing = [f"| `{code}` | {lack.feature or 'several'} | {lack.why} |" for code, lack in sorted(LACKS.items())]
    tables = [_CODES_INTRO, *rows, _WARNINGS_INTRO, *warnings, _ERRORS_INTRO, *errors, _LACKS_INTRO, *missing]
    return "\n".join(tables) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(codes_page() if sys.argv[1:] == ["codes"] else reference())
