"""Parts of a JSON value by JSONPath or dotted path, and JSON Schema that never fetches anything."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from holdfast.checks.wording import shorten
from holdfast.model.codec import canonical


def parse(text: str) -> Any:
    """The text as JSON; ValueError if it is not, RecursionError if nested too deeply."""
    import json

    return json.loads(text, parse_constant=_refuse, parse_int=_integer)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    # Python refuses to read integers of over 4,300 digits; JSON knows no such limit.
    return int(digits) if len(digits) < 4000 else float(digits)


def is_jsonpath(path: str) -> bool:
    return path.startswith("$")


def parts(value: Any, path: str) -> list[Any]:
    """Every part that the path names; empty if there is none."""
    if is_jsonpath(path):
        return list(_query(path).findall(value))
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return []
    return [value]


@lru_cache(maxsize=256)
def _query(path: str) -> Any:
    import jsonpath

    return jsonpath.compile(path)


def fault_in_path(path: str) -> str | None:
    """Why the path cannot be used, or None."""
    import jsonpath

    if not is_jsonpath(path):
        return None if all(path.split(".")) else "not a dotted path: a part is empty"
    try:
        _query(path)
    except jsonpath.JSONPathError as bad:
        return f"not a JSONPath: {shorten(str(bad).splitlines()[0], 100)}"
    return None


def fault_in_schema(schema: dict[str, Any]) -> str | None:
    """Why the schema cannot be used, or None."""
    try:
        _validator(canonical(schema))
    except ValueError as bad:
        return f"not a JSON Schema: {shorten(str(bad).splitlines()[0], 120)}"
    return None


def violation(schema: dict[str, Any], value: Any) -> str | None:
    """The first thing in which the value breaks the schema, or None."""
    for error in _validator(canonical(schema)).iter_errors(value):
        where = ".".join(str(key) for key in error.instance_path)
        return f"at {shorten(where, 60)}: {shorten(error.message, 110)}" if where else shorten(error.message, 150)
    return None


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    import json

    from jsonschema_rs import validator_for

    return validator_for(json.loads(schema), retriever=_fetch_nothing)


def _fetch_nothing(uri: str) -> Any:
    raise ValueError("a schema must hold all that it refers to")
