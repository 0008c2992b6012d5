"""The configuration reference, as Markdown: `python -m holdfast.spec.catalogue.reference > docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.model.capabilities import LACKS
from holdfast.model.doctor_codes import DOCTOR_CODES
from holdfast.model.error_codes import ERROR_CODES
from holdfast.model.problem_codes import PROBLEM_CODES
from holdfast.model.reason_codes import REASON_CODES
from holdfast.model.run_warning import NOTES, WARNINGS
from holdfast.model.verdict import CODES
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


_CODES_INTRO = """# Codes

Codes identify findings, warnings and errors. Use them in scripts: the wording of messages may change.

## Codes of findings

Every verdict except a pass has a code. Many also have a key with the values that identify the cause, such as the
tool, the field or the exit code. `report.json` has both, JUnit has the code as `type`, SARIF under `properties`.
Failures with the same rule, outcome, code and key are reported as one cause. If a crash, a timeout or another bad
ending leaves nothing to judge, all its rules are one cause. Text from outside, such as exceptions and stderr, appears
in keys as a digest.

| code | meaning | from |
|---|---|---|"""

_WARNINGS_INTRO = """
## Codes of warnings

`report.json` lists the warnings of a run as `[{code, text}]`. JUnit has the code in the name of the property
(`warning.stateful`), SARIF under `properties`. Warnings about the spec file have the codes that `holdfast validate
--json` prints; these are the others.

`warnings: {ignore: [code, …]}` in the spec silences warnings by their codes, those about the spec file included.
Reports count them, `-v` shows them, and JSON keeps them with `"ignored": true`.

| code | meaning |
|---|---|"""


_ERRORS_INTRO = """
## Codes of errors

If a command fails, it prints `error: message [code]`. With `--json`, the code is in `errors[].code`. Errors in the
spec file have the codes that `holdfast validate` prints; these are the others.

| code | meaning |
|---|---|"""


_NOTES_INTRO = """
## Codes of notes

A note says something about the complete run that is not a problem. `ended.json` has its code.

| code | meaning |
|---|---|"""


_LACKS_INTRO = """
## Codes of missing features

What a machine, a backend or an agent cannot do. `report.json` has these codes under `isolation`. If no sandbox can be
opened at all, the command fails with one of them as its error code.

| code | feature | why |
|---|---|---|"""


_PROBLEMS_INTRO = """
## Codes of problems in a spec file

`holdfast validate` prints the code after each message, and `--json` has it in `errors[].code` and `warnings[].code`.
Codes that begin with `lint-` are warnings: the file can be run, and probably does not mean what its author thinks.

| code | meaning |
|---|---|"""


_REASONS_INTRO = """
## Codes of verdicts

`reason_codes` of a run's JSON has one code for each of its `reasons`.

| code | meaning |
|---|---|"""
_DOCTOR_INTRO = """
## Codes of `holdfast doctor`

`holdfast doctor --json` prints the code of each line. A line that reports an error or a problem in the spec file has
the code of that error or problem; these are the others.

| code | meaning |
|---|---|"""


def build_codes_page() -> str:
    """Return the Markdown page with every code, generated from the checks and the tables of codes."""
    meanings: dict[str, tuple[str, list[str]]] = {code: (meaning, []) for code, meaning in CODES.items()}
    for name, check in iter_checks():
        if isinstance(check, CodesTrait):
            for code, meaning in check.codes.items():
                meanings.setdefault(code, (meaning, []))[1].append(f"`{name}`")
    rows = [f"| `{code}` | {meaning} | {', '.join(names)} |" for code, (meaning, names) in sorted(meanings.items())]
    lines = [_CODES_INTRO, *rows]
    tables = (
        (_REASONS_INTRO, REASON_CODES),
        (_WARNINGS_INTRO, WARNINGS),
        (_NOTES_INTRO, NOTES),
        (_ERRORS_INTRO, ERROR_CODES),
        (_PROBLEMS_INTRO, PROBLEM_CODES),
        (_DOCTOR_INTRO, DOCTOR_CODES),
    )
    for intro, codes in tables:
        lines += [intro, *(f"| `{code}` | {meaning} |" for code, meaning in sorted(codes.items()))]
    missing = [f"| `{code}` | {lack.feature or 'several'} | {lack.why} |" for code, lack in sorted(LACKS.items())]
    return "\n".join([*lines, _LACKS_INTRO, *missing]) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(build_codes_page() if sys.argv[1:] == ["codes"] else build_reference())
