"""The declarations of a settings type: its keys with types, limits, defaults and descriptions.

Sections are msgspec Structs, plug-ins are frozen dataclasses; both are read the same way. A field of type `Node` is not
a key: it receives the node that the section was read from.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import msgspec.structs
from msgspec import NODEFAULT, Struct
from msgspec._core import Factory  # type: ignore[import-not-found]  # what a default factory is kept as

from holdfast.reading.node import Node

Value = TypeVar("Value", bound=Struct)
Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""


class ValueForm(Struct, frozen=True):
    """A value with its own syntax: its reader, its JSON Schema, and its name in the reference."""

    read: Callable[[Any, Node], Any]
    schema: Callable[[], Schema]
    words: str
    example: str = ""
    """An example as written, for forms that become numbers, which a reference may replace."""


class Hint(Struct, frozen=True):
    """A parsed type hint."""

    base: Any
    form: ValueForm | None
    limits: tuple[msgspec.Meta, ...]

    @property
    def description(self) -> str:
        return next((meta.description for meta in self.limits if meta.description), "")


class Field(Struct, frozen=True, dict=True):
    """One key of a section."""

    name: str
    """The name in Python."""
    key: str
    """The key in the file."""
    owner: type
    required: bool
    default: Any

    @property
    def is_section(self) -> bool:
        """Whether it is a section with defaults for all of its keys."""
        return isinstance(self.default, Struct) and self.hint.form is None

    @cached_property
    def hint(self) -> Hint:
        return parse_hint(_evaluate_hint(self.owner, self.name))


def about(description: str, **limits: Any) -> msgspec.Meta:
    """Return the description and limits of a key."""
    return msgspec.Meta(description=description, **limits)


def parse_hint(hint: Any) -> Hint:
    """Return the type without its annotations, and the annotations; a parsed hint itself."""
    return hint if isinstance(hint, Hint) else _parse_hint(hint)


@cache
def _parse_hint(hint: Any) -> Hint:
    form: ValueForm | None = None
    limits: list[msgspec.Meta] = []
    while get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        form = next((e for e in extras if isinstance(e, ValueForm)), form)
        limits += [e for e in extras if isinstance(e, msgspec.Meta)]
    # What is said of an optional value is said of the key: msgspec wants the limits of a number inside the union.
    members = [m for m in get_args(hint) if m is not type(None)] if get_origin(hint) in (Union, types.UnionType) else []
    if len(members) == 1 and (inner := parse_hint(members[0])).limits and inner.form is None:
        return Hint(inner.base | None, form, (*limits, *inner.limits))
    return Hint(hint, form, tuple(limits))


@cache
def get_keys(kind: type) -> tuple[Field, ...]:
    """Return the keys of a settings type, in declaration order."""
    raw = _list_struct_fields(kind) if issubclass(kind, msgspec.Struct) else _list_dataclass_fields(kind)
    return tuple(Field(name, key, kind, *rest) for name, key, *rest in raw if not _has_node(kind, name))


@cache
def _evaluate_hint(kind: type, name: str) -> Any:
    """Return the type of a field, evaluated on demand: a file has few of the possible keys."""
    # get_type_hints on the class would evaluate every annotation of every section, which costs more than reading a
    # small file. So only a namespace with this one annotation is evaluated.
    home, written = _find_annotation(kind, name)
    namespace = types.SimpleNamespace(__annotations__={name: written})
    return get_type_hints(namespace, vars(sys.modules[home.__module__]), include_extras=True)[name]


def _find_annotation(kind: type, name: str) -> tuple[type, Any]:
    """Return the annotation of a field, and the class that declares it."""
    return next((c, notes[name]) for c in kind.__mro__ if name in (notes := getattr(c, "__annotations__", {})))


def _has_node(kind: type, name: str) -> bool:
    # Nearly all annotations are text and do not contain the word Node: only the few that do are evaluated.
    written = _find_annotation(kind, name)[1]
    return written is Node or (isinstance(written, str) and "Node" in written and _evaluate_hint(kind, name) is Node)


def _list_struct_fields(kind: type[msgspec.Struct]) -> list[tuple[str, str, bool, Any]]:
    """Return what `msgspec.structs.fields` returns, without the types, which it would evaluate again."""
    names, keys, defaults = kind.__struct_fields__, kind.__struct_encode_fields__, kind.__struct_defaults__
    rows = []
    for name, key, default in zip(names, keys, (*[NODEFAULT] * (len(names) - len(defaults)), *defaults), strict=True):
        value = default.factory() if isinstance(default, Factory) else default
        rows.append((name, key, value is NODEFAULT, None if value is NODEFAULT else value))
    return rows


def _list_dataclass_fields(kind: type) -> list[tuple[str, str, bool, Any]]:
    rows = []
    for f in dataclasses.fields(kind):
        value = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        required = value is dataclasses.MISSING
        rows.append((f.name, f.name, required, None if required else value))
    own = vars(kind).get("__annotations__", {})  # a reader wants the settings of this check before inherited ones
    return sorted(rows, key=lambda row: row[0] not in own)


@cache
def get_node_field(kind: type) -> str | None:
    """Return the field that receives the section's node."""
    if not issubclass(kind, msgspec.Struct):
        return None
    return next((name for name in kind.__struct_fields__ if _has_node(kind, name)), None)


def list_key_names(kind: type) -> list[str]:
    return [f.key for f in get_keys(kind)]


def convert_settings(kind: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored settings as the types that the kind declares; without limits, which the reader has checked."""
    types = {field.key: field.hint.base for field in get_keys(kind)}
    return {name: msgspec.convert(value, types.get(name, Any)) for name, value in settings.items()}


def convert(kind: type[Value], section: Struct, **changes: Any) -> Value:
    """Return a value of that type: `changes`, and for the other fields the section's values of the same names."""
    values = msgspec.structs.asdict(section)
    return kind(**{name: values[name] for name in kind.__struct_fields__ if name in values} | changes)
