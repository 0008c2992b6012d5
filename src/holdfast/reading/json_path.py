"""`response_path`: JSONPath or dots, to a finder for the value in a reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from holdfast.errors import AgentUnavailable

MISSING: Final = object()
"""Nothing is there. A null that is there is None."""

Find: TypeAlias = Callable[[Any], Any]

_PLAIN = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[\d+\])*")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[(['\"])(.+?)\3\]")


def find_at(path: str) -> Find:
    """A finder for a JSONPath (`$...`) or a dotted path; AgentUnavailable if it is neither."""
    if path.startswith("$") and not _PLAIN.fullmatch(path):
        return _jsonpath(path)
    steps = _steps(path.removeprefix("$"), path)
    return lambda value: _walk(value, steps)


def _steps(rest: str, path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    while rest:
        match = _STEP.match(rest)
        if not match:
            raise _bad_path(path, f"cannot read it from {rest!r} on")
        steps.append(int(match[2]) if match[2] else match[4] or match[1])
        rest = rest[match.end() :]
    return tuple(steps)


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = _item(value, step)
        elif isinstance(value, dict):
            value = value.get(str(step), MISSING)
        else:
            return MISSING
    return value


def _item(items: list[Any], step: str | int) -> Any:
    try:
        return items[int(step)]
    except (ValueError, IndexError):
        return MISSING


def _jsonpath(path: str) -> Find:
    from jsonpath import JSONPathError, compile

    try:
        query = compile(path)
    except JSONPathError as bad:
        raise _bad_path(path, str(bad).splitlines()[0]) from None

    def find(value: Any) -> Any:
        found = query.findall(value) if isinstance(value, dict | list) else []
        if len(found) < 2:
            return found[0] if found else MISSING
        texts = [item for item in found if isinstance(item, str)]
        return "\n".join(texts) if len(texts) == len(found) else found

    return find


def _bad_path(path: str, why: str) -> AgentUnavailable:
    return AgentUnavailable(
        f"agent.response_path {path!r} is no path: {why}",
        hint="write JSONPath ($.choices[0].message.content) or dots (data.result)",
        config=True,
    )
