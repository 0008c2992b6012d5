"""The canaries in the values of a call, wherever they are: in fields of objects, in bytes, in keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import ModuleType
from typing import Any

from holdfast.model.canary import Lookout, echoes

_VALUES = 20_000
"""Values of one call that are looked at."""
_BLANK = frozenset((int, float, bool, type(None)))
_BYTES = (bytes, bytearray, memoryview)
_PROGRAM = (type, ModuleType)


class ReadValues:
    """Reads the values of one call; `unread` says whether some of them could not be read."""

    def __init__(self, value: Any) -> None:
        self.unread = False
        self._found: dict[str, None] = {}
        known: dict[int, Any] = {}  # by id, and kept: an id may be used again
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if id(one) in known or type(one) in _BLANK:
                continue
            known[id(one)] = one
            if len(known) > _VALUES:
                self.unread = True
                return
            try:
                waiting += self._parts(one)
            except Exception:  # a library's object may refuse to be looked at
                self.unread = True

    @property
    def canaries(self) -> tuple[str, ...]:
        """In small letters, each once."""
        return tuple(self._found)

    def _parts(self, value: Any) -> list[Any]:
        """What the value holds; what it is itself is read here."""
        if isinstance(value, str):
            self._found |= dict.fromkeys(echoes(value))
            return []
        if isinstance(value, _BYTES):
            data = bytes(value)
            lookout = Lookout(packed=data[:2] == b"\x1f\x8b")
            lookout.feed(data)
            self._found |= dict.fromkeys(lookout.found)
            self.unread = self.unread or not lookout.legible
            return []
        if isinstance(value, Mapping):
            return [*value.keys(), *value.values()]
        if isinstance(value, list | tuple | Set):
            return list(value)
        if isinstance(value, Iterator):
            self.unread = True  # to read it would be to use it up
            return []
        return [] if isinstance(value, _PROGRAM) or callable(value) else [_shown(value), *_fields(value)]


def _fields(value: Any) -> list[Any]:
    """What an object holds: its own attributes, those in slots included."""
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    held = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*held, *vars(value).values()] if hasattr(value, "__dict__") else held


def _slots(kind: type) -> list[str]:
    named = vars(kind).get("__slots__", ())
    return [named] if isinstance(named, str) else [name for name in named if name not in ("__dict__", "__weakref__")]


def _shown(value: Any) -> str:
    """What an object prints of itself: a number of another kind, a path or a date has no fields."""
    return str(value)[:_VALUES]
