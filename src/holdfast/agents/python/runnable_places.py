"""What a field of a runnable's input accepts, by its type or its JSON Schema."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Takes:
    """What one field of an input accepts."""

    text: bool = False
    messages: bool = False
    dicts: bool = False
    """Whether its messages are plain dicts."""

    def __or__(self, other: Takes) -> Takes:
        return Takes(self.text or other.text, self.messages or other.messages, self.dicts or other.dicts)


ANYTHING = Takes(text=True, messages=True)


def takes(hint: Any) -> Takes:
    """What a field of this type accepts."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        reduced = any("add_messages" in getattr(extra, "__name__", "") for extra in args[1:])
        return Takes(messages=True) if reduced else takes(args[0])
    if getattr(origin, "__name__", getattr(origin, "_name", "")) in ("Required", "NotRequired", "ReadOnly"):
        return takes(args[0])
    if origin in (typing.Union, types.UnionType):
        accepted = Takes()
        for arm in args:
            accepted |= takes(arm)
        return accepted
    if hint is Any or hint is object or isinstance(hint, str | typing.ForwardRef | typing.TypeVar):
        return ANYTHING
    if hint is str:
        return Takes(text=True)
    return _list_takes(args[:1]) if _is_list(origin or hint) else Takes()


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__name__", "") in ("list", "List", "Sequence", "Iterable", "Collection", "MutableSequence")


def _list_takes(items: tuple[Any, ...]) -> Takes:
    """What a list of these accepts: messages in some form, or something else."""
    if not items or items[0] is Any or isinstance(items[0], typing.TypeVar):
        return Takes(messages=True)
    kinds = [items[0]]
    while kinds:
        kind = kinds.pop()
        origin = typing.get_origin(kind)
        if kind is dict or origin is dict:
            return Takes(messages=True, dicts=True)
        if isinstance(kind, type) and any(base.__name__ == "BaseMessage" for base in kind.__mro__):
            return Takes(messages=True)
        if origin in (typing.Union, types.UnionType, typing.Annotated):
            kinds += typing.get_args(kind)[: 1 if origin is typing.Annotated else None]
    return Takes()


def resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(20):
        if "$ref" not in schema:
            break
        schema = defs.get(str(schema["$ref"]).rpartition("/")[2], {})
    return schema


def says_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "anyOf", "oneOf", "allOf", "enum", "const"} & set(schema))


def takes_by_json(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Takes:
    """What a field of this schema accepts."""
    schema = resolved(schema, defs)
    accepted = Takes()
    for arm in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        accepted |= takes_by_json(arm, defs)
    if not says_type(schema):
        return ANYTHING
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "string" in kinds and not {"enum", "const"} & set(schema):
        accepted |= Takes(text=True)
    if "array" in kinds and _holds_messages(schema.get("items", {}), defs):
        accepted |= Takes(messages=True, dicts=schema.get("items", {}).get("type") == "object")
    return accepted


def _holds_messages(items: Any, defs: Mapping[str, Any]) -> bool:
    """Whether these items can be messages: any type, plain objects, or objects with content and a type."""
    items = resolved(items, defs) if isinstance(items, Mapping) else {}
    arms = (*items.get("anyOf", ()), *items.get("oneOf", ()))
    if arms:
        return any(_holds_messages(arm, defs) for arm in arms)
    properties = items.get("properties", {})
    if properties:
        return {"content", "type"} <= set(properties)
    return not says_type(items) or items.get("type") == "object"
