"""Problems for people: position, message, the line itself, and what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.model.scenario import Position
from holdfast.model.spec import Problem, Spec
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.tree import BREAK, parse
from holdfast.reading.words import format_plural

_UNUSED = "lint-unused-default"


def warn_unused_default(reader: Reader, node: Node) -> None:
    """Note a key that has no effect and holds its default."""
    reader.warn(node, "", code=_UNUSED)


def report_inner(
    reader: Reader, node: Node, file: str, problems: Iterable[Problem], *, code: str = "", most: int = 0
) -> None:
    """Report the errors of another file at the node that names it; at most `most` errors, unless that is 0."""
    errors = [problem for problem in problems if problem.severity == "error"]
    for number, problem in enumerate(errors[: most or None], 1):
        where = f"{file}:{problem.line}:{problem.column}" if problem.line else file
        more = f" (and {len(errors) - most} more)" if number == most < len(errors) else ""
        message = f"{where} {problem.path}".rstrip() + f": {problem.message}{more}"
        reader.report(node, message, hint=problem.hint, code=code or problem.code)


def combine_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems without those that another one implies; all unused defaults become one warning."""
    # `endpont: …` is both an unknown key and a missing one. Only the first is reported, because it names the second.
    listed = list(problems)
    meant = find_misspelt_keys(listed)
    remaining = [p for p in listed if p.code != _UNUSED and (p.code != "missing-key" or p.path not in meant)]
    unused: dict[str, list[str]] = {}
    for p in listed:
        if p.code == _UNUSED:
            parent, _, key = p.path.rpartition(".")
            unused.setdefault(parent, []).append(key)
    if unused:
        first = next(p for p in listed if p.code == _UNUSED)
        places = "; ".join(f"{parent}: {', '.join(keys)}" for parent, keys in unused.items())
        hint = "you can remove them; another value would be reported"
        remaining.append(replace(first, message=f"these defaults have no effect here: {places}", hint=hint))
    return remaining


def find_misspelt_keys(problems: Iterable[Problem]) -> set[str]:
    """Return the paths of the keys that unknown ones were probably meant to be."""
    paths = set()
    for p in problems:
        if p.code == "unknown-key" and p.suggestion:
            parent = p.path.rpartition(".")[0]
            paths.add(f"{parent}.{p.suggestion}" if parent else p.suggestion)
    return paths


_WINDOW = 160
"""Characters of a long line shown around the position."""
_SECRET_CODES = frozenset({"literal-secret", "lint-literal-secret"})
_RED, _YELLOW, _BOLD, _DIM, _OFF = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_PLAIN = re.compile(r"[ -~]*")


def explain(file: str, source: str, problems: Sequence[Problem], *, color: bool = False) -> str:
    """Return all problems in the order of the file, each with its source line."""
    lines = re.split(BREAK, source) if source else []
    _mask(lines, problems)
    ordered = sorted((p for p in problems if not p.ignored), key=lambda p: (p.line, p.column, p.severity, p.path))
    return "".join(_explain_problem(file, lines, problem, color) for problem in ordered)


def count_problems(problems: Iterable[Problem]) -> str:
    """Return `1 error, 1 warning, 2 ignored.`; empty if there are no problems."""
    listed = list(problems)
    ignored = sum(p.ignored for p in listed)
    errors = sum(p.severity == "error" for p in listed)
    counts = [(errors, "error"), (len(listed) - errors - ignored, "warning")]
    parts = [format_plural(count, noun) for count, noun in counts if count] + [f"{ignored} ignored"] * bool(ignored)
    return ", ".join(parts) + "." if parts else ""


def make_visible(text: str) -> str:
    """Return the text with control codes and invisible characters made visible."""
    return text if _PLAIN.fullmatch(text) else "".join(_make_character_visible(char) for char in text)


def _make_character_visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return " " if char == "\t" else chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char


def _mask(lines: list[str], problems: Iterable[Problem]) -> None:
    """Hide what looks like a key: screens are shared more often than files."""
    for p in problems:
        if p.code in _SECRET_CODES and 0 < p.line <= len(lines):
            line, start = lines[p.line - 1], p.column - 1
            lines[p.line - 1] = line[:start] + "*" * p.length + line[start + p.length :]


def _explain_problem(file: str, lines: list[str], problem: Problem, color: bool) -> str:
    red, yellow, bold, dim, off = (_RED, _YELLOW, _BOLD, _DIM, _OFF) if color else ("",) * 5
    tint = red if problem.severity == "error" else yellow
    place = f"{file}:{problem.line}:{problem.column}" if problem.line else file
    note = "  (warning)" if problem.severity == "warning" else ""
    parts = [
        f"{bold}{make_visible(place)}{off}",
        make_visible(problem.path),
        f"{tint}{make_visible(problem.message)}{off}",
    ]
    code = f"  {dim}[{problem.code}]{off}" if problem.code else ""
    head = "  ".join(part for part in parts if part) + note + code + "\n"
    if not 0 < problem.line <= len(lines):
        return head + (f"      {make_visible(problem.hint)}\n" if problem.hint else "")
    # The caret must stand below the marked text on the screen, so its distance is measured in columns of a terminal:
    # wide characters take two, combining ones none, and control characters are shown as something visible first.
    line, column = _cut_window(lines[problem.line - 1], problem.column)
    before = make_visible(line[: column - 1])
    marked = make_visible(line[column - 1 : column - 1 + problem.length])
    carets = " " * _measure_width(before) + tint + "^" * max(_measure_width(marked), 1) + off
    hint = f" {make_visible(problem.hint)}" if problem.hint else ""
    number = f"{problem.line:>5}"
    return f"{head}{dim}{number} │{off} {make_visible(line)}\n{dim}{' ' * len(number)} │{off} {carets}{hint}\n"


def _cut_window(line: str, column: int) -> tuple[str, int]:
    """Return the part of a long line around a column, and the column in it."""
    if len(line) <= _WINDOW:
        return line, column
    start = max(0, column - 1 - _WINDOW // 2)
    cut = line[start : start + _WINDOW]
    return (f"…{cut}", column - start + 1) if start else (cut, column)


def _measure_width(text: str) -> int:
    """Return the width of the text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


def read_source(spec: Spec) -> str:
    """Return the text of a spec, for showing problems in it; empty if it cannot be read, or was built in Python."""
    if spec.built is not None:
        return ""
    try:
        return Path(spec.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def find_key_position(spec: Spec, key: str) -> Position | None:
    """Return where the file has a key such as `agent.tools[1]`; its agent's section if the key is not written there."""
    root, _ = parse(read_source(spec))
    node = None if root is None else root.find(key)
    return spec.agent.position if node is None or node.kind == "null" else node.position


_START = Position(1, 1)


def find_contract_problems(spec: Spec) -> list[Problem]:
    """Return what a contract run requires: rules, scenarios and something to ask."""
    rules = spec.invariants
    first = (rules[0].position if rules else spec.agent.position) or _START
    problems = []
    if not rules:
        problems.append(
            _build_problem("contract.invariants", "no rules", "add contract: with name and invariants", first)
        )
    if not spec.scenarios:
        hint = "add chaos_matrix: with - name: no-chaos, or use --profile"
        problems.append(_build_problem("chaos_matrix", "no scenarios", hint, first))
    silent = next((rule for rule in rules if not rule.probes), None)
    if not spec.tasks and (silent is not None or not rules):
        what = f"nothing to ask for the rule {silent.id}, which has no probes" if silent else "nothing to ask"
        hint = f"add golden_prompts: or task:, or probes to {silent.id if silent else 'every rule'}"
        problems.append(_build_problem("golden_prompts", what, hint, (silent and silent.position) or first))
    return problems


def _build_problem(path: str, message: str, hint: str, at: Position) -> Problem:
    message = f"holdfast contract run needs it: {message}"
    return Problem(message, path, at.line, at.column, hint=hint, code="no-contract")


def reject_unset_variables(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems as a run sees them: a variable without a value is an error."""
    return tuple(
        replace(p, severity="error", message=f"the variable {p.values[0]} is not set")
        if p.code == "unset-variable"
        else p
        for p in problems
    )


def report_unbuilt(spec: Spec) -> list[Problem]:
    """Return what this release reads and cannot run: a warning, or an error for an unknown name."""
    return [
        Problem(
            u.why if u.mistake else f"{u.why.rstrip('.')}; a run would be refused",
            u.section,
            u.position.line,
            u.position.column,
            hint=u.hint,
            severity="error" if u.mistake else "warning",
            code="not-built",
        )
        for u in spec.unbuilt
    ]
