"""Compares a call's arguments with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from holdfast.model.trace import TEXT_KEPT

_CUT = " … "


def has_arguments(written: str, wanted: Mapping[str, Any] | None) -> bool | None:
    """Whether recorded arguments contain everything that is expected; None if they were shortened."""
    if not wanted:
        return True
    if is_truncated(written):
        return None
    arguments = parse_arguments(written)
    return arguments is not None and all(
        name in arguments and _is_match(arguments[name], value) for name, value in wanted.items()
    )


def is_truncated(written: str) -> bool:
    """Whether the middle was left out to keep an event small: the rest may still look complete."""
    return len(written) >= TEXT_KEPT - len(_CUT) and _CUT in written


def parse_arguments(written: str) -> dict[str, Any] | None:
    """Return arguments or a body as a mapping; None if it is not a JSON object, or was cut."""
    if is_truncated(written):
        return None
    try:
        return msgspec.json.decode(written, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _is_match(actual: Any, wanted: Any) -> bool:
    """Compare a value: text is a glob, numbers are compared as numbers, any other value must be equal."""
    if isinstance(wanted, str):
        return fnmatchcase(actual if isinstance(actual, str) else msgspec.json.encode(actual).decode(), wanted)
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return actual is wanted
    return bool(actual == wanted)
