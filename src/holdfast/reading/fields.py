"""What a settings type declares: its keys, their types, limits, defaults and words.

Sections are msgspec Structs, plug-ins are frozen dataclasses; both are read the same way. A field of type
`Node` is no key: it receives the node that the section was read from.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec._core import Factory  # type: ignore[import-not-found]  # what a default factory is kept as

from holdfast.reading.node import Node

Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""


class ValueForm(Struct, frozen=True):
    """A value with a spelling of its own: how it is read, its JSON Schema, and its name in the reference."""

    read: Callable[[Any, Node, str], Any]
    schema: Callable[[], Schema]
    words: str
    example: str = ""
    """A value as it is written. Of forms that are numbers in the end, which a reference may stand for."""


class Hint(Struct, frozen=True):
    """A type hint taken apart."""

    base: Any
    form: ValueForm | None
    limits: tuple[msgspec.Meta, ...]

    @property
    def description(self) -> str:
        own = next((m.description for m in self.limits if m.description), "")
        if own or get_origin(self.base) not in (Union, types.UnionType):
            return own
        return next((words for member in get_args(self.base) if (words := peel(member).description)), "")


class Field(Struct, frozen=True):
    """One key of a section."""

    name: str
    """In Python."""
    key: str
    """In the file."""
    hint: Hint
    required: bool
    default: Any


def about(description: str, **limits: Any) -> msgspec.Meta:
    """The words and limits of a key."""
    return msgspec.Meta(description=description, **limits)


@cache
def peel(hint: Any) -> Hint:
    """The type without its annotations, and the annotations."""
    form: ValueForm | None = None
    limits: list[msgspec.Meta] = []
    while get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        form = next((e for e in extras if isinstance(e, ValueForm)), form)
        limits += [e for e in extras if isinstance(e, msgspec.Meta)]
    return Hint(hint, form, tuple(limits))


@cache
def keys_of(kind: type) -> tuple[Field, ...]:
    """The keys of a settings type, in the order they are declared."""
    hints = _hints(kind)
    raw = _struct_fields(kind) if issubclass(kind, msgspec.Struct) else _dataclass_fields(kind)
    return tuple(
        Field(name, key, peel(hints[name]), required, default)
        for name, key, required, default in raw
        if hints[name] is not Node and get_origin(hints[name]) is not ClassVar
    )


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of its fields: evaluated once, since that is most of what reading a short file takes."""
    return get_type_hints(kind, include_extras=True)


def _struct_fields(kind: type[msgspec.Struct]) -> list[tuple[str, str, bool, Any]]:
    """What `msgspec.structs.fields` tells but for the types, which it would evaluate again."""
    names, keys, defaults = kind.__struct_fields__, kind.__struct_encode_fields__, kind.__struct_defaults__
    rows = []
    for name, key, default in zip(names, keys, (*[NODEFAULT] * (len(names) - len(defaults)), *defaults), strict=True):
        made = default.factory() if isinstance(default, Factory) else default
        rows.append((name, key, made is NODEFAULT, None if made is NODEFAULT else made))
    return rows


def _dataclass_fields(kind: type) -> list[tuple[str, str, bool, Any]]:
    rows = []
    for f in dataclasses.fields(kind):
        made = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        required = made is dataclasses.MISSING
        rows.append((f.name, f.name, required, None if required else made))
    return rows


@cache
def node_field(kind: type) -> str | None:
    """The field that receives the section's node."""
    if not issubclass(kind, msgspec.Struct):
        return None
    return next((name for name, hint in _hints(kind).items() if hint is Node), None)


def key_names(kind: type) -> list[str]:
    return [f.key for f in keys_of(kind)]
