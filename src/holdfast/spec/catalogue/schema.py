"""The JSON Schema of a settings type, from the same annotations that the reader uses."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from holdfast.model.spec import Aggregation
from holdfast.reading.fields import Field, Hint, Schema, get_keys, parse_hint
from holdfast.reading.hints import AS_WRITTEN, describe_range, describe_type, is_reference_only

_SCALARS: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _allow_reference(schema: Schema, hint: Hint) -> Schema:
    """Return the value, or a `${VAR}` that resolves to it."""
    if not is_reference_only(hint):
        return schema
    words: Schema = {key: schema.pop(key) for key in ("description", "default", "examples") if key in schema}
    return {"anyOf": [schema, {"type": "string", "pattern": r"\$\{"}], **words}


def _build_element_schema(hint: Any) -> Schema:
    return _allow_reference(build_schema(hint), parse_hint(hint))


def build_schema(hint: Any) -> Schema:
    """Return the schema of a type hint."""
    hint = parse_hint(hint)
    schema = dict(hint.form.schema()) if hint.form else _build_base_schema(hint.base)
    for limit in hint.limits:
        # JSON Schema ignores a limit that does not fit the type next to it: a minimum beside `anyOf: [integer, null]`
        # would apply to nothing, so it moves into the members it fits.
        if "anyOf" in schema and list_limits(limit):  # an optional value: the limits are those of the value
            schema["anyOf"] = [{**member, **_select_limits(member, limit)} for member in schema["anyOf"]]
        else:
            schema.update(_select_limits(schema, limit))
    if hint.description:
        schema["description"] = hint.description
    if examples := next((limit.examples for limit in hint.limits if limit.examples), None):
        schema["examples"] = list(examples)
    return schema


def list_limits(limit: msgspec.Meta) -> dict[str, Any]:
    pairs = {
        "minimum": limit.ge,
        "exclusiveMinimum": limit.gt,
        "maximum": limit.le,
        "exclusiveMaximum": limit.lt,
        "pattern": limit.pattern,
        "minLength": limit.min_length,
        "maxLength": limit.max_length,
    }
    return {key: value for key, value in pairs.items() if value is not None}


def _select_limits(schema: Schema, limit: msgspec.Meta) -> Schema:
    """Return the limits that apply to a value of the schema's type."""
    keys = list_limits(limit)
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return {k: v for k, v in keys.items() if "inimum" in k or "aximum" in k}
    if kind == "string":
        return {k: v for k, v in keys.items() if k in ("pattern", "minLength", "maxLength")}
    renamed = {"array": {"minLength": "minItems", "maxLength": "maxItems"}, "object": {"minLength": "minProperties"}}
    names = renamed.get(kind, {}) if isinstance(kind, str) else {}
    return {names[k]: v for k, v in keys.items() if k in names}


def _build_base_schema(base: Any) -> Schema:
    origin, args = get_origin(base), get_args(base)
    if base is Any:
        return {}
    if base in _SCALARS:
        return {"type": _SCALARS[base]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if a is type(None) else build_schema(a) for a in args]}
    if origin in (list, tuple, Sequence, frozenset, set):
        return {"type": "array", "items": _build_element_schema(args[0]) if args else {}}
    if origin in (dict, Mapping) or base is dict:
        schema: Schema = {"type": "object"}
        if args:
            schema["additionalProperties"] = _build_element_schema(args[1])
            key = build_schema(args[0])
            if "enum" in key:
                schema["propertyNames"] = {"enum": key["enum"]}
        return schema
    if isinstance(base, type) and (issubclass(base, msgspec.Struct) or is_dataclass(base)):
        return {"$ref": f"#/$defs/{base.__name__}"}
    raise TypeError(f"no JSON Schema for {base!r}")


def build_properties(kind: type) -> dict[str, Schema]:
    """Return the schemas of a type's keys, with their defaults."""
    return {field.key: _build_property(field) for field in get_keys(kind)}


def _build_property(field: Field) -> Schema:
    schema = build_schema(field.hint)
    if not field.required and isinstance(field.default, str | int | float | bool):
        schema["default"] = field.default
    if not field.required and isinstance(field.default, tuple) and field.default:
        schema["default"] = list(field.default)
    if field.is_section:  # it may also be written without keys
        schema = {"anyOf": [{"$ref": schema.pop("$ref")}, {"type": "null"}], **schema}
    return schema if field.key in AS_WRITTEN else _allow_reference(schema, field.hint)


def build_shared_refs(kind: type, name: str) -> dict[str, Schema]:
    """Return the same keys as a reference to the definition `name`, which is written once."""
    return {field.key: {"$ref": f"#/$defs/{name}/properties/{field.key}"} for field in get_keys(kind)}


def build_selector(name: str, kind: type) -> Schema:
    """Return the key that selects which other keys an entry has, with a description."""
    return {"const": name, "description": get_first_line(kind)}


def get_first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def list_required(kind: type) -> list[str]:
    return [field.key for field in get_keys(kind) if field.required]


def build_section_schema(kind: type) -> Schema:
    """Return the schema of a section: its keys and no others."""
    return build_variant(build_properties(kind), list_required(kind), get_first_line(kind))


def build_variant(props: Mapping[str, Schema], notes: list[str], description: str) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(props), "additionalProperties": False}
    if description:
        schema["description"] = description
    if notes:
        schema["required"] = notes
    return schema


def describe_field(field: Field) -> str:
    """Describe a field's type with its limits: `a whole number, at least 0`."""
    limits = [describe_range(limit) for limit in field.hint.limits if describe_range(limit)]
    return ", ".join([describe_type(field.hint), *limits])


def format_default(value: Any) -> str:
    """Return a default in the form to write; empty if there is none worth showing."""
    if value is None or value is UNSET or value in ("", (), {}, []):
        return ""
    if isinstance(value, Aggregation):
        return value.kind
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, str | int | float | bool):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return ""
