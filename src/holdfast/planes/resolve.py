"""From `module:attribute.path` to the object there."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from holdfast.errors import UserError


def resolve(path: str) -> tuple[Any, Any, str]:
    """The object, what holds it, and under which name; UserError with the near miss if it is not there."""
    module_name, _, attributes = path.partition(":")
    if not module_name or not attributes:
        raise UserError(f"{path!r} is not of the form module:attribute")
    found: Any = import_module(module_name)
    holder, key = found, ""
    for key in attributes.split("."):
        holder = found
        try:
            found = getattr(found, key)
        except AttributeError:
            raise UserError(f"{path!r}: {_named(holder)} has no attribute {key!r}", hint=_near(key, holder)) from None
    return found, holder, key


def _named(place: Any) -> str:
    return f"module {place.__name__}" if isinstance(place, ModuleType) else f"a {type(place).__name__}"


def _near(key: str, holder: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, dir(holder), 1)
    return f"did you mean {near[0]}?" if near else ""
