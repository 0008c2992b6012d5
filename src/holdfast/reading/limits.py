"""Types and limits in words, and values held against them."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from holdfast.reading.fields import Hint, peel

SCALARS: dict[Any, tuple[tuple[str, ...], str]] = {
    bool: (("bool",), "true or false"),
    int: (("int",), "a whole number"),
    float: (("int", "float"), "a number"),
    str: (("text",), "text"),
}
_PLURALS = {"a map": "maps", "a whole number": "whole numbers", "a number": "numbers", "any value": "values"}
_SCALAR_KINDS = ("bool", "int", "float", "text")


def kinds_of(hint: Any) -> tuple[str, ...]:
    """The kinds of node that a type can be read from."""
    peeled = peel(hint)
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


def name_of(hint: Any) -> str:
    """The type in words, as messages and the reference say it."""
    return hint_name(peel(hint))


def hint_name(peeled: Hint) -> str:
    """The same of a hint that was taken apart."""
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
        return " or ".join(dict.fromkeys(name_of(m) for m in get_args(base) if m is not type(None)))
    if origin in (list, tuple, Sequence, frozenset, set):
        args = get_args(base)
        return f"a list of {_PLURALS.get(name_of(args[0]), name_of(args[0]))}" if args else "a list"
    return "a map"


def beyond(limit: msgspec.Meta, value: Any) -> str:
    """What the limit asks for, if the value is beyond it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_beyond(limit, value)
    if isinstance(value, str):
        return _text_beyond(limit, value)
    if isinstance(value, list | tuple | dict | frozenset | set) and limit.min_length and len(value) < limit.min_length:
        return f"expected at least {'one entry' if limit.min_length == 1 else f'{limit.min_length} entries'}"
    return ""


def _number_beyond(limit: msgspec.Meta, value: float) -> str:
    low = (limit.ge is not None and value < limit.ge) or (limit.gt is not None and value <= limit.gt)
    high = (limit.le is not None and value > limit.le) or (limit.lt is not None and value >= limit.lt)
    return f"expected {range_of(limit)}" if low or high else ""


def range_of(limit: msgspec.Meta) -> str:
    """The limits of a number in words."""
    low = f"at least {limit.ge}" if limit.ge is not None else f"more than {limit.gt}" if limit.gt is not None else ""
    high = f"at most {limit.le}" if limit.le is not None else f"less than {limit.lt}" if limit.lt is not None else ""
    if limit.ge is not None and limit.le is not None:
        return f"{limit.ge} to {limit.le}"
    return " and ".join(part for part in (low, high) if part)


def _text_beyond(limit: msgspec.Meta, value: str) -> str:
    if limit.min_length and len(value) < limit.min_length:
        return "expected some text" if limit.min_length == 1 else f"expected at least {limit.min_length} characters"
    if limit.max_length is not None and len(value) > limit.max_length:
        return f"expected at most {limit.max_length} characters"
    if limit.pattern is not None:
        import re

        if re.search(limit.pattern, value) is None:
            return f"expected text like {limit.pattern}"
    return ""
