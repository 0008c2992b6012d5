"""Writes a tool's value as JSON that can be read back. Values that JSON lacks become `{"$python": kind, …}`.

The agent's process writes a value when it is returned, and recreates it when a session is replayed. A value that would
not survive the round trip is written as lost, with the reason; `promote` refuses it.
"""

from __future__ import annotations

import copyreg
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.model.codec import encode, make_encodable

TAG = "$python"
REPLY_KEPT = 500_000
"""Maximum length of a reply kept for a replay, in characters."""
LossCode: TypeAlias = Literal["too-long", "too-deep", "no-json", "not-text", "packed", "streamed", "argument-changed"]

_MARK = f'{{"{TAG}":'
_LOST = "lost"
_LARGEST = 2**63
"""From this size on, Holdfast's YAML reader reads a number as text."""
_ITEMS = ("builtins:tuple", "builtins:set", "builtins:frozenset")
_BYTES = ("builtins:bytes", "builtins:bytearray")
_DATES = ("datetime:date", "datetime:datetime", "datetime:time")
_TEXTS = (
    "builtins:int", "builtins:float", "builtins:complex", "decimal:Decimal", "fractions:Fraction", "uuid:UUID",
    "pathlib:PosixPath", "pathlib:PurePosixPath", "pathlib._local:PosixPath", "pathlib._local:PurePosixPath",
)  # fmt: skip
"""Classes that recreate an equal value from its printed text."""
_DURATION = "datetime:timedelta"
_MAPS = ("builtins:dict", "collections:OrderedDict")
_NEW_OBJECT: Any = vars(copyreg)["__newobj__"]
"""The function with which `copy` says that an object is created by its class's `__new__` alone."""


class UnkeptReply(Struct, frozen=True):
    """A reply that was not kept, and why."""

    code: LossCode
    kind: str = ""
    """`module:Class` of the value that cannot be written to a file."""


class _Unkept(Exception):
    """A value that would not survive the round trip."""

    def __init__(self, code: LossCode, kind: type | None = None) -> None:
        self.lost = UnkeptReply(code, "" if kind is None else f"{kind.__module__}:{kind.__qualname__}")


def write_reply(value: Any) -> str:
    """Return the value as JSON; `read_lost` says why it could not be kept."""
    try:
        written = _write(value)
        text = encode(written).decode()
        if _MARK in text:
            _ensure_same(written, value)
    except _Unkept as unkept:
        return write_lost(unkept.lost.code, unkept.lost.kind)
    except RecursionError:
        return write_lost("too-deep")
    return text if len(text) <= REPLY_KEPT else write_lost("too-long")


def write_lost(code: LossCode, kind: str = "") -> str:
    """Return the placeholder for a reply that is not kept."""
    return encode({TAG: _LOST, "code": code, "kind": make_encodable(kind)}).decode()


def read_lost(text: str) -> UnkeptReply | None:
    """Return why a reply was not kept; None if it was."""
    if not text.startswith(f'{_MARK}"{_LOST}"'):
        return None
    return msgspec.convert({key: part for key, part in msgspec.json.decode(text).items() if key != TAG}, UnkeptReply)


def has_python(text: str) -> bool:
    """Return whether a written reply has values that only a Python process can recreate."""
    return _MARK in text


def read_reply(text: str) -> Any:
    """Return the value of a written reply. Raises HarnessError if it cannot be recreated in this process."""
    try:
        return _read(msgspec.json.decode(text))
    except Exception as broken:  # classes may have moved or changed since
        raise HarnessError(
            f"a recorded reply cannot be recreated: {type(broken).__name__}: {broken}", code="recording-unusable"
        ) from broken


def load_class(path: str) -> Any:
    """Return the object at `module:Class`."""
    module, _, names = path.partition(":")
    loaded: Any = import_module(module)
    for name in names.split("."):
        loaded = getattr(loaded, name)
    return loaded


# -- writing ------------------------------------------------------------------------------------------
def _write(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        if not value.isascii() and make_encodable(value) != value:
            raise _Unkept("no-json", kind)
        return value
    if kind is int and -_LARGEST < value < _LARGEST:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return [_write(part) for part in value]
    if kind is dict:
        if all(type(key) is str and key != TAG for key in value):
            return {_write(key): _write(part) for key, part in value.items()}
        return _write_pairs(value, _MAPS[0])
    try:
        return _write_other(value, kind)
    except (_Unkept, RecursionError):
        raise
    except Exception as broken:  # the agent's classes provide their state, and may fail in any way
        raise _Unkept("no-json", kind) from broken


def _write_pairs(value: dict[Any, Any], path: str) -> Any:
    return {TAG: path, "value": [[_write(key), _write(part)] for key, part in value.items()]}


def _write_other(value: Any, kind: type) -> Any:
    path = f"{kind.__module__}:{kind.__qualname__}"
    if path in _ITEMS:
        items = [_write(part) for part in value]
        return {TAG: path, "value": items if kind is tuple else sorted(items, key=encode)}
    if path in _MAPS:
        return _write_pairs(value, path)
    leaf = _write_leaf(value, path)
    if leaf is not None:
        written = {TAG: path, "value": leaf}
        if repr(_read(written)) != repr(value):  # a named time zone, for example, would become an offset
            raise _Unkept("no-json", kind)
        return written
    # Defined inside a function, or in a main program, which is a different one when the session is replayed.
    if kind.__module__ == "__main__" or load_class(path) is not kind:
        raise _Unkept("no-json", kind)
    if isinstance(value, Enum):
        return {TAG: "enum", "class": path, "value": value.name}
    return {TAG: "object", "class": path, **_write_state(value, kind), **_write_cause(value)}


def _write_cause(value: Any) -> dict[str, Any]:
    """Return the exception that this one was raised from.

    Few agents read it, so one that cannot be kept is left out.
    """
    if not isinstance(value, BaseException) or value.__cause__ is None:
        return {}
    try:
        written = _write(value.__cause__)
        _ensure_same(written, value.__cause__)
    except (_Unkept, RecursionError):
        return {}
    return {"cause": written}


def _write_leaf(value: Any, path: str) -> str | None:
    if path in _TEXTS:
        return str(value)
    if path in _BYTES:
        return b64encode(value).decode()
    if path in _DATES:
        text: str = value.isoformat()
        return text
    return f"{value.days} {value.seconds} {value.microseconds}" if path == _DURATION else None


def _write_state(value: Any, kind: type) -> dict[str, Any]:
    """Return the state that `copy` would take; an object that only its class's constructor can create is not kept."""
    # The protocol of `copy` and `pickle` says how an object is rebuilt. Only its simplest form is kept, a class and its
    # state: anything else would call code of the agent with arguments that may mean something else by then.
    create, arguments, *rest = value.__reduce_ex__(2)
    state, items = (rest[0] if rest else None), rest[1:]
    if isinstance(value, BaseException) and create is kind:
        args = arguments
    elif create is _NEW_OBJECT and arguments[0] is kind:
        args = arguments[1:]
    else:
        raise _Unkept("no-json", kind)
    if any(item is not None for item in items):
        raise _Unkept("no-json", kind)
    return {"args": _write(list(args)), "state": _write(state)}


def _ensure_same(written: Any, value: Any) -> None:
    """Recreate the value and write it again. If both texts are equal, `copy` sees the same state in both."""
    try:
        recreated = _read(written)
    except Exception as broken:
        raise _Unkept("no-json", type(value)) from broken
    if type(recreated) is not type(value) or encode(_write(recreated)) != encode(written):
        raise _Unkept("no-json", type(value))


# -- reading ------------------------------------------------------------------------------------------
def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(part) for part in written]
    if not isinstance(written, dict):
        return written
    if TAG not in written:
        return {key: _read(part) for key, part in written.items()}
    path = written[TAG]
    reader = _READERS.get(path)
    if reader is None:
        raise ValueError(f"{TAG}: {path!r} is not a known kind of value")
    return reader(written)


def _read_enum(written: dict[str, Any]) -> Any:
    kind = load_class(written["class"])
    if not issubclass(kind, Enum):
        raise TypeError(f"{written['class']} is not an Enum")
    return kind[written["value"]]


def _read_object(written: dict[str, Any]) -> Any:
    """Return an object created as `copy` would: without calling `__init__`, whose arguments are unknown."""
    kind, args, state = load_class(written["class"]), _read(written["args"]), _read(written["state"])
    recreated = kind.__new__(kind, *args)
    if isinstance(recreated, BaseException):  # the built-in part of an exception has fields of its own, such as errno
        next(base for base in kind.__mro__ if base.__module__ == "builtins").__init__(recreated, *args)
        if "cause" in written:
            recreated.__cause__ = _read(written["cause"])
    if state is None:
        return recreated
    if hasattr(recreated, "__setstate__"):
        recreated.__setstate__(state)
        return recreated
    fields, slots = state if isinstance(state, tuple) else (state, None)
    for name, field in {**(fields or {}), **(slots or {})}.items():
        object.__setattr__(recreated, name, field)  # a frozen dataclass rejects any other way
    return recreated


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "enum": _read_enum,
    "object": _read_object,
    **dict.fromkeys(_MAPS, lambda written: load_class(written[TAG])((_read(k), _read(v)) for k, v in written["value"])),
    _DURATION: lambda written: load_class(_DURATION)(*map(int, written["value"].split())),
    **dict.fromkeys(_ITEMS, lambda written: load_class(written[TAG])(map(_read, written["value"]))),
    **dict.fromkeys(_BYTES, lambda written: load_class(written[TAG])(b64decode(written["value"]))),
    **dict.fromkeys(_DATES, lambda written: load_class(written[TAG]).fromisoformat(written["value"])),
    **dict.fromkeys(_TEXTS, lambda written: load_class(written[TAG])(written["value"])),
}
