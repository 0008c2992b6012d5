"""Types and limits in words, checks of values against them, and suggestions for values of the wrong shape."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from holdfast.model.shorten import shorten
from holdfast.reading.fields import Hint, get_keys, parse_hint
from holdfast.reading.node import Node, parse_plain
from holdfast.reading.words import suggest_name

SCALARS: dict[Any, tuple[tuple[str, ...], str]] = {
    bool: (("bool",), "true or false"),
    int: (("int",), "a whole number"),
    float: (("int", "float"), "a number"),
    str: (("text",), "text"),
}
_PLURALS = {"a map": "maps", "a whole number": "whole numbers", "a number": "numbers", "any value": "values"}
_SCALAR_KINDS = ("bool", "int", "float", "text")


def get_node_kinds(hint: Any) -> tuple[str, ...]:
    """Return the kinds of node that a type can be read from."""
    peeled = parse_hint(hint)
    base, origin = peeled.base, get_origin(peeled.base)
    if base is Any or peeled.form:
        return (*_SCALAR_KINDS, "null", "list", "map")
    if base in SCALARS:
        return SCALARS[base][0]
    if origin is Literal:
        return tuple({bool: "bool", int: "int", float: "float", str: "text"}[type(o)] for o in get_args(base))
    if origin in (list, tuple, Sequence, frozenset, set):
        return ("list",)
    return ("map",)


def describe_type(hint: Any) -> str:
    """Return the type in words, as in messages and the reference."""
    peeled = parse_hint(hint)
    base, origin = peeled.base, get_origin(peeled.base)
    if peeled.form:
        return peeled.form.words
    if base in SCALARS:
        return SCALARS[base][1]
    if base is Any:
        return "any value"
    if origin is Literal:
        return " | ".join(str(o) for o in get_args(base))
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(describe_type(m) for m in get_args(base) if m is not type(None)))
    if origin in (list, tuple, Sequence, frozenset, set):
        args = get_args(base)
        return f"a list of {_PLURALS.get(describe_type(args[0]), describe_type(args[0]))}" if args else "a list"
    return "a map"


def find_limit_error(limit: msgspec.Meta, value: Any) -> str:
    """Return what the limit requires, if the value is beyond it."""
    # msgspec checks limits only when it converts, and reports the first one without a position. Here the value is
    # already converted, and the message must name all of the range.
    if isinstance(value, int | float) and not isinstance(value, bool):
        low = (limit.ge is not None and value < limit.ge) or (limit.gt is not None and value <= limit.gt)
        high = (limit.le is not None and value > limit.le) or (limit.lt is not None and value >= limit.lt)
        return f"expected {describe_range(limit)}" if low or high else ""
    if isinstance(value, str):
        if limit.min_length and len(value) < limit.min_length:
            return "expected some text" if limit.min_length == 1 else f"expected at least {limit.min_length} characters"
        if limit.max_length is not None and len(value) > limit.max_length:
            return f"expected at most {limit.max_length} characters"
        if limit.pattern is not None and re.search(limit.pattern, value) is None:
            return f"expected text like {limit.pattern}"
        return ""
    if isinstance(value, list | tuple | dict | frozenset | set) and limit.min_length and len(value) < limit.min_length:
        return f"expected at least {'one entry' if limit.min_length == 1 else f'{limit.min_length} entries'}"
    return ""


def describe_range(limit: msgspec.Meta) -> str:
    """Return the limits of a number in words."""
    low = f"at least {limit.ge}" if limit.ge is not None else f"more than {limit.gt}" if limit.gt is not None else ""
    high = f"at most {limit.le}" if limit.le is not None else f"less than {limit.lt}" if limit.lt is not None else ""
    if limit.ge is not None and limit.le is not None:
        return f"{limit.ge} to {limit.le}"
    return " and ".join(part for part in (low, high) if part)


AS_WRITTEN = ("version", "type", "mode")
"""Keys that decide how the rest is read; they cannot be references."""


def is_reference_only(hint: Hint) -> bool:
    """Return whether text here can only be a reference, or the value's own syntax: a number, a duration, an option."""
    if hint.form is not None:
        return bool(hint.form.example)
    if get_origin(hint.base) in (Union, types.UnionType):
        members = [parse_hint(member) for member in get_args(hint.base) if member is not type(None)]
        return all(is_reference_only(member) for member in members)
    return hint.base in (bool, int, float) or get_origin(hint.base) is Literal


def get_placeholder(hint: Hint) -> str:
    """Return a placeholder that the type accepts, for a value that is not known yet."""
    if hint.form is not None:
        return hint.form.example
    if get_origin(hint.base) in (Union, types.UnionType):
        member = parse_hint(next(m for m in get_args(hint.base) if m is not type(None)))
        return get_placeholder(Hint(member.base, member.form, (*member.limits, *hint.limits)))
    if get_origin(hint.base) is Literal:
        return str(get_args(hint.base)[0])
    return "false" if hint.base is bool else str(_get_least_number(hint))


def _get_least_number(hint: Hint) -> Any:
    """Return the least number within the limits; 1 without a lower limit."""
    for limit in hint.limits:
        if limit.ge is not None:
            return limit.ge
        if limit.gt is not None:
            top = limit.lt if limit.le is None else limit.le
            return limit.gt + 1 if top is None else (limit.gt + top) / 2
    return 1


_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
UNCLOSED = "the reference has no closing brace"
_UNCLOSED = re.compile(r"\$\{[A-Za-z_]\w*(?::-[^}]*)?$")


def suggest_scalar(base: type, node: Node) -> str:
    """Return the hint for a scalar of the wrong kind."""
    if base is str:
        return f'quote it: "{node.text}"' if node.kind in ("int", "float", "bool") else ""
    if node.kind != "text" or node.reference or not node.text:
        return ""
    if base is bool and node.text.lower() in _BOOLS:
        return f"write {_BOOLS[node.text.lower()]}"
    return f"write {node.text} without quotes" if node.style and parse_plain(node.text)[0] in SCALARS[base][0] else ""


def suggest_list(element: Any, node: Node) -> str:
    """Return the hint for one value where a list is expected."""
    if node.kind == "null":
        return "write its entries below it, each after a dash"
    if node.kind == "map":
        return "start each entry with a dash: - key: value"
    hint = parse_hint(element)
    words = hint.form.words if hint.form else ""
    if node.kind == "text" and (hint.base is str or get_origin(hint.base) is Literal or words.startswith("text,")):
        return (
            f'write ["{shorten(node.text, 40)}"]' if '"' not in node.text else "write it as an entry of a list: - text"
        )
    return f"write [{node.text}]" if node.kind in ("int", "float", "bool") and not node.reference else ""


def suggest_map(kind: Any, node: Node) -> str:
    """Return the hint for a value where a map is expected."""
    if node.kind == "null":
        return "write {} for none" if kind is None else "write its keys below it"
    if node.kind == "list":
        return "remove the dashes: write its keys below it" if any(i.kind == "map" for i in node.items) else ""
    required = [field.key for field in get_keys(kind) if field.required] if kind is not None else []
    return f"write {{{required[0]}: {shorten(node.text, 40)}}}" if len(required) == 1 else "write key: value"


def suggest_option(members: tuple[Any, ...], node: Node) -> str:
    """Return the suggestion among the options of a union."""
    options = [
        str(o) for m in members if get_origin(parse_hint(m).base) is Literal for o in get_args(parse_hint(m).base)
    ]
    return suggest_name(node.text, options) if options and node.kind == "text" else ""


def suggest_closing(text: str) -> str:
    """Return what to write for a reference with an unclosed brace; empty if there is none."""
    return f"close it: {shorten(text, 60)}}}" if _UNCLOSED.search(text) else ""
