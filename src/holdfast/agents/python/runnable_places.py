"""Infers what a field of a runnable's input accepts, from its type or its JSON Schema."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AcceptedInput:
    """What one field of an input accepts."""

    text: bool = False
    messages: bool = False
    dicts: bool = False
    """Whether its messages are plain dicts."""

    def __or__(self, other: AcceptedInput) -> AcceptedInput:
        return AcceptedInput(self.text or other.text, self.messages or other.messages, self.dicts or other.dicts)


ANYTHING = AcceptedInput(text=True, messages=True)


def infer_accepted(hint: Any) -> AcceptedInput:
    """Return what a field of this type accepts."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        reduced = any("add_messages" in getattr(extra, "__name__", "") for extra in args[1:])
        return AcceptedInput(messages=True) if reduced else infer_accepted(args[0])
    if getattr(origin, "__name__", getattr(origin, "_name", "")) in ("Required", "NotRequired", "ReadOnly"):
        return infer_accepted(args[0])
    if origin in (typing.Union, types.UnionType):
        accepted = AcceptedInput()
        for arm in args:
            accepted |= infer_accepted(arm)
        return accepted
    if hint is Any or hint is object or isinstance(hint, str | typing.ForwardRef | typing.TypeVar):
        return ANYTHING
    if hint is str:
        return AcceptedInput(text=True)
    return _infer_from_items(args[:1]) if _is_list(origin or hint) else AcceptedInput()


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__name__", "") in ("list", "List", "Sequence", "Iterable", "Collection", "MutableSequence")


def _infer_from_items(items: tuple[Any, ...]) -> AcceptedInput:
    """Return what a list of these accepts: messages in some form, or something else."""
    if not items or items[0] is Any or isinstance(items[0], typing.TypeVar):
        return AcceptedInput(messages=True)
    kinds = [items[0]]
    while kinds:
        kind = kinds.pop()
        origin = typing.get_origin(kind)
        if kind is dict or origin is dict:
            return AcceptedInput(messages=True, dicts=True)
        if isinstance(kind, type) and any(base.__name__ == "BaseMessage" for base in kind.__mro__):
            return AcceptedInput(messages=True)
        if origin in (typing.Union, types.UnionType, typing.Annotated):
            kinds += typing.get_args(kind)[: 1 if origin is typing.Annotated else None]
    return AcceptedInput()


def resolve_ref(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(20):
        if "$ref" not in schema:
            break
        schema = defs.get(str(schema["$ref"]).rpartition("/")[2], {})
    return schema


def has_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "anyOf", "oneOf", "allOf", "enum", "const"} & set(schema))


def infer_from_schema(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> AcceptedInput:
    """Return what a field of this schema accepts."""
    schema = resolve_ref(schema, defs)
    accepted = AcceptedInput()
    for arm in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        accepted |= infer_from_schema(arm, defs)
    if not has_type(schema):
        return ANYTHING
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "string" in kinds and not {"enum", "const"} & set(schema):
        accepted |= AcceptedInput(text=True)
    if "array" in kinds and _can_hold_messages(schema.get("items", {}), defs):
        accepted |= AcceptedInput(messages=True, dicts=schema.get("items", {}).get("type") == "object")
    return accepted


def _can_hold_messages(items: Any, defs: Mapping[str, Any]) -> bool:
    """Return whether these items can be messages: any type, plain objects, or objects with content and a type."""
    items = resolve_ref(items, defs) if isinstance(items, Mapping) else {}
    arms = (*items.get("anyOf", ()), *items.get("oneOf", ()))
    if arms:
        return any(_can_hold_messages(arm, defs) for arm in arms)
    properties = items.get("properties", {})
    if properties:
        return {"content", "type"} <= set(properties)
    return not has_type(items) or items.get("type") == "object"
