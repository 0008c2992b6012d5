"""Stand-ins for callables whose code cannot be exchanged: builtins, partials, `lru_cache` objects.

A stand-in is a Python function put wherever the callable is known to live. A reference that stays
elsewhere would not meet the fault, so it is an error that says where it is.
"""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable
from types import BuiltinMethodType, CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from holdfast.errors import UserError


class CallableHome(NamedTuple):
    """A place a callable lives in, and how to put another one there."""

    container: Any
    key: Any
    put: Callable[[Any, Any, Any], None]


class Declared:
    """A callable that was declared, under a name; not a container, so it is not taken for a stray reference."""

    __slots__ = ("homes", "method", "name", "plane", "target")

    def __init__(self, plane: str, name: str, target: Any, homes: list[CallableHome], *, method: bool = False) -> None:
        self.plane = plane
        self.name = name
        self.target = target
        self.homes = homes
        self.method = method
        """A plain method of a class: called on any instance."""


def replace(declared: Declared) -> FunctionType:
    """Puts a stand-in at every home of the callable; UserError if it cannot, or if a reference stays."""
    name, target = declared.name, declared.target
    if isinstance(target, type) or not callable(target):
        what = f"the class {target.__name__}" if isinstance(target, type) else f"a {type(target).__name__}"
        raise UserError(f"{name!r} is {what}, which cannot be a tool", hint="name a function, a method or an instance")
    stand_in = _stand_in(declared)
    for home in declared.homes:
        try:
            home.put(home.container, home.key, stand_in)
        except (AttributeError, TypeError) as broken:
            put_back(declared)
            raise UserError(f"{name!r} cannot be wrapped: {broken}", hint="wrap it in a Python function") from None
    strays = sorted(set(_strays(target, stand_in)))
    if strays:
        put_back(declared)
        raise UserError(
            f"{name!r} is a {type(target).__name__} that is also held by {', '.join(strays)}; "
            "calls made there would not meet the fault",
            hint="wrap it in a Python function and declare that",
        )
    return stand_in


def put_back(declared: Declared) -> None:
    """The callable itself again, where it can be put."""
    for home in declared.homes:
        try:
            home.put(home.container, home.key, declared.target)
        except (AttributeError, TypeError):
            continue  # it never left


def _stand_in(declared: Declared) -> FunctionType:
    target: Any = declared.target

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return await target(*args, **kwargs)

    def called(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    stand_in: Any = awaited if inspect.iscoroutinefunction(target) else called
    functools.update_wrapper(stand_in, target)
    home = declared.homes[0]
    if isinstance(home.container, ModuleType):  # so that it pickles by the name it now has
        stand_in.__module__, stand_in.__qualname__ = home.container.__name__, home.key
    for name in dir(target):
        if not name.startswith("__") and not hasattr(stand_in, name):
            setattr(stand_in, name, getattr(target, name))  # cache_clear and the like
    assert isinstance(stand_in, FunctionType)
    return stand_in


def _strays(target: Any, stand_in: FunctionType) -> list[str]:
    """The places, other than our own, that still hold the callable."""
    ours = {id(stand_in.__dict__), id(stand_in), *map(id, stand_in.__closure__ or ())}
    found = []
    for place in gc.get_referrers(target):  # a loop: a comprehension would hold the callable in a cell of its own
        if id(place) in ours or isinstance(place, FrameType | Declared) or _is_own(place, target):
            continue
        found.append(_named(place, target))
    return found


def _is_own(place: Any, target: Any) -> bool:
    """A method of the callable itself, such as `cache_clear`, holds it too."""
    return isinstance(place, BuiltinMethodType | MethodType) and place.__self__ is target


def _named(place: Any, target: Any) -> str:
    if isinstance(place, dict):
        keys = ", ".join(str(key) for key, value in place.items() if value is target)
        return f"{_owner(place)} ({keys})"
    if isinstance(place, CellType):
        return "a closure"
    return f"a {type(place).__name__}"


def _owner(place: dict[Any, Any]) -> str:
    if isinstance(place.get("__name__"), str) and "__spec__" in place:
        return f"module {place['__name__']}"
    for holder in gc.get_referrers(place):
        if isinstance(holder, type):
            return f"class {holder.__name__}"
        if getattr(holder, "__dict__", None) is place:
            return f"a {type(holder).__name__}"
    return "a dict"
