"""Scalars that are no text, and so may be given by a reference; and what stands for one that has no value yet."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from holdfast.reading.fields import Hint, peel

AS_WRITTEN = ("version", "type", "mode")
"""What decides how the rest is read is written out."""


def by_reference(hint: Hint) -> bool:
    """Whether text there can only be a reference, or the value's own spelling: a number, a duration, an option."""
    if hint.form is not None:
        return bool(hint.form.example)
    if get_origin(hint.base) in (Union, types.UnionType):
        members = [peel(member) for member in get_args(hint.base) if member is not type(None)]
        return all(by_reference(member) for member in members)
    return hint.base in (bool, int, float) or get_origin(hint.base) is Literal


def stand_in(hint: Hint) -> str:
    """A value that the type takes, as it is written: for one that is not known yet."""
    if hint.form is not None:
        return hint.form.example
    if get_origin(hint.base) in (Union, types.UnionType):
        member = peel(next(m for m in get_args(hint.base) if m is not type(None)))
        return stand_in(Hint(member.base, member.form, (*member.limits, *hint.limits)))
    if get_origin(hint.base) is Literal:
        return str(get_args(hint.base)[0])
    return "false" if hint.base is bool else str(_least(hint))


def _least(hint: Hint) -> Any:
    """The least number within the limits; 1 where there is no lower one."""
    for limit in hint.limits:
        if limit.ge is not None:
            return limit.ge
        if limit.gt is not None:
            top = limit.lt if limit.le is None else limit.le
            return limit.gt + 1 if top is None else (limit.gt + top) / 2
    return 1
