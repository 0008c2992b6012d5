"""Parts of a JSON value by JSONPath or dotted path, and violations of a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast.checks.patterns import explain_dead_pattern
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.verdict import Finding
from holdfast.reading.json_values import BadPath, build_validator, compile_path, parse_json

_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Schema keys that hold schemas by user-defined names."""
_VALUES = ("const", "enum", "default", "examples", "required", "dependentRequired")
"""Schema keys that hold no schemas."""
_TOO_DEEP = "Recursion limit"
"""The validator's message if the value violates the schema and the part to show cannot be passed on."""
Pairs: TypeAlias = list[tuple[str, Any]]
"""The members of a JSON object in their order."""


class DuplicateKey(ValueError):
    """An object has a duplicate key."""


def parse(text: str, *, unique: bool = False, build: Callable[[Pairs], dict[str, Any]] | None = None) -> Any:
    """Parse JSON; raise ValueError if it is invalid.

    With `unique` it also raises if an object has a duplicate key: a verdict must not depend on which of them a reader
    takes. `build` makes each object from its members.
    """
    hook = _reject_duplicates if unique else build
    return parse_json(
        text, JSONDecoder(parse_constant=_reject_constant, parse_int=_parse_integer, object_pairs_hook=hook)
    )


def _reject_duplicates(pairs: Pairs) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise DuplicateKey(f"the key {shorten(key, 40)} appears twice")
        result[key] = value
    return result


JSON_CODES: Mapping[str, str] = {
    "json-invalid": "The answer is not JSON.",
    "json-key-twice": "An object has a duplicate key.",
    "json-part-missing": "There is nothing at the path.",
    "json-unreadable": "Holdfast cannot check this JSON.",
}


def read_answer(text: str, *, unique: bool = True) -> Any:
    """Return the answer as JSON, or the Finding that it is not JSON."""
    try:
        return parse(text, unique=unique)
    except DuplicateKey as bad:
        return Finding(False, f"JSON that can be read in two ways: {bad}", "json-key-twice", empty=True)
    except ValueError as bad:
        # Two malformed answers have one cause if the parser stopped for the same reason.
        stopped = bad.pos if isinstance(bad, JSONDecodeError) else len(text)
        marks = ((stopped, stopped + 1),) if stopped < len(text) else ()
        if text.lstrip().startswith("```"):
            why, key = "it is fenced by ```; the complete answer must be JSON", "fenced"
        else:
            # The parser's message says what kind of error it is. A text that is wrong from its first character is
            # prose.
            kind = bad.msg if isinstance(bad, JSONDecodeError) else str(bad)
            why, key = shorten(str(bad), 120), compute_fingerprint(kind) if text[:stopped].strip() else "prose"
        return Finding(False, f"not JSON: {why}", "json-invalid", (key,), marks=marks)


def judge_json(text: str, check: Callable[[Any], Finding], *, unique: bool = True, empty: bool = False) -> Finding:
    """Return the finding of a check on the answer as JSON; `empty`: an answer that is not JSON has nothing to check."""
    answer = read_answer(text, unique=unique)
    if isinstance(answer, Finding):
        return replace(answer, empty=empty or answer.empty)
    try:
        return check(answer)
    except (UnicodeEncodeError, RecursionError) as bad:
        return Finding(None, f"Holdfast cannot check this JSON: {shorten(str(bad), 120)}", "json-unreadable")


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_integer(digits: str) -> int | float:
    # Python refuses integers of over 4,300 digits; JSON has no such limit.
    return int(digits) if len(digits) < 4000 else float(digits)


def select_parts(value: Any, path: str) -> list[Any]:
    """Return every part that the path selects; empty if there is none."""
    return compile_path(path)(value)


def find_path_error(path: str) -> str | None:
    """Return why the path cannot be used, or None."""
    try:
        compile_path(path)
    except BadPath as bad:
        return f"not a {'JSONPath' if path.startswith('$') else 'dotted path'}: {shorten(str(bad), 100)}"
    return None


def find_schema_error(schema: dict[str, Any]) -> str | None:
    """Return why the schema cannot be used, or None."""
    try:
        build_validator(schema)
    except ValueError as bad:
        return f"not a JSON Schema: {shorten(str(bad).splitlines()[0], 120)}"
    return None


def explain_unsatisfiable_schema(schema: Any) -> str | None:
    """Return why a regex in the schema can never match; None if all of them could match, or there is none."""
    return next((why for pattern in _iter_schema_patterns(schema) if (why := explain_dead_pattern(pattern))), None)


def _iter_schema_patterns(schema: Any) -> Iterator[str]:
    """Yield every regex of a schema and its subschemas."""
    parts = list(schema) if isinstance(schema, list) else []
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        maps = [schema.get(key) for key in _NAMED]
        yield from (key for key in schema.get("patternProperties", ()))
        parts = [part for some in maps if isinstance(some, dict) for part in some.values()]
        parts += [part for key, part in schema.items() if key not in (*_NAMED, *_VALUES)]
    for part in parts:
        yield from _iter_schema_patterns(part)


def find_violation(schema: dict[str, Any], value: Any) -> str | None:
    """Return the first violation of the schema, or None; raise HarnessError if the schema cannot be used."""
    try:
        errors = list(islice(build_validator(schema, formats=True).iter_errors(value), 1))
    except UnicodeEncodeError:
        raise
    except ValueError as bad:
        if _TOO_DEEP not in str(bad):
            raise HarnessError(
                f"the schema cannot be used: {shorten(str(bad).partition(chr(10))[0], 120)}", code="schema-unusable"
            ) from bad
        return "a part of it is nested too deeply to be shown"
    for error in errors:
        where = ".".join(str(key) for key in error.instance_path)
        return f"at {shorten(where, 60)}: {shorten(error.message, 110)}" if where else shorten(error.message, 150)
    return None
