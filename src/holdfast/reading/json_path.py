"""Parts of a JSON value by JSONPath (`$.choices[0]`) or dots (`data.result`), for answers and for checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from holdfast.errors import AgentUnavailable

MISSING: Final = object()
"""Nothing is there. A null that is there is None."""

Find: TypeAlias = Callable[[Any], Any]
FindAll: TypeAlias = Callable[[Any], list[Any]]

HINT = "write JSONPath ($.choices[0].message.content) or dots (data.result)"
_PLAIN = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[\d+\])*")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[(['\"])(.+?)\3\]")


class BadPath(ValueError):
    """A text is neither JSONPath nor dots; why."""


@lru_cache(maxsize=256)
def query(path: str) -> FindAll:
    """Finds every part that the path names; BadPath if it is none."""
    if not path:
        raise BadPath("it is empty")
    if path.startswith("$") and not _PLAIN.fullmatch(path):
        return _jsonpath(path)
    steps = _steps(path.removeprefix("$"))

    def find(value: Any) -> list[Any]:
        found = _walk(value, steps)
        return [] if found is MISSING else [found]

    return find


def find_at(path: str) -> Find:
    """A finder for the answer at a path: MISSING, one value, or several, as one text where all are texts."""
    try:
        parts_at = query(path)
    except BadPath as bad:
        raise AgentUnavailable(f"agent.response_path {path!r} is not a path: {bad}", hint=HINT, config=True) from None

    def find(value: Any) -> Any:
        found = parts_at(value)
        if len(found) < 2:
            return found[0] if found else MISSING
        texts = [item for item in found if isinstance(item, str)]
        return "\n".join(texts) if len(texts) == len(found) else found

    return find


def _steps(rest: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    while rest:
        match = _STEP.match(rest)
        if not match:
            raise BadPath(f"cannot read it from {rest!r} on")
        steps.append(int(match[2]) if match[2] else match[4] or match[1])
        rest = rest[match.end() :]
    return tuple(steps)


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = _item(value, step)
        elif isinstance(value, dict):
            value = value.get(step, MISSING)
        else:
            return MISSING
    return value


def _item(items: list[Any], step: str | int) -> Any:
    try:
        return items[int(step)]
    except (ValueError, IndexError):
        return MISSING


def _jsonpath(path: str) -> FindAll:
    from jsonpath import JSONPathError, compile

    try:
        compiled = compile(path)
    except JSONPathError as bad:
        raise BadPath(str(bad).splitlines()[0]) from None
    return lambda value: list(compiled.findall(value)) if isinstance(value, dict | list) else []
