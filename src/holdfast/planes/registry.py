"""Two ways for Python code to declare its tools: a registry and a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from holdfast.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])

declared: dict[str, Callable[..., Any]] = {}
"""The functions that `@holdfast.tool` marked in this process, by name."""


class ToolUnusable(UserError):
    """A declared tool or model function cannot be wrapped."""

    default_code = "tool-unusable"


class ToolRegistry(dict[str, Callable[..., Any]]):
    """A dict of name to callable: `registry.add(f)`, `registry["f"](...)`."""

    def add(self, function: F, *, name: str | None = None) -> F:
        """Register a callable; usable as a decorator."""
        self[name or function.__name__] = function
        return function


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, name: str) -> Callable[[F], F]: ...
def tool(function: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Mark a function as a tool that faults may hit: `@holdfast.tool` or `@holdfast.tool(name="x")`."""

    def mark(function: F) -> F:
        _declare(name or function.__name__, function)
        return function

    return mark if function is None else mark(function)


def _declare(name: str, function: Callable[..., Any]) -> None:
    before = declared.get(name, function)
    places = [_find_definition(one) for one in (before, function)]
    # A module that is imported again declares its tools again.
    if before is not function and places[0] != places[1]:
        raise ToolUnusable(
            f"two tools are called {name!r}: {places[0]} and {places[1]}",
            hint="rename one: @holdfast.tool(name=...)",
        )
    declared[name] = function


def _find_definition(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
