"""A provider's own list of parts, edited as little as a changed reply needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.completion import Completion, ToolCall

PartKind: TypeAlias = Literal["text", "call", "other"]


class PartFormat(Struct, frozen=True):
    """How a format's parts are told apart and made, from an earlier part where there is one."""

    kind: Callable[[Any], PartKind]
    text: Callable[[str, Any], Any]
    call: Callable[[ToolCall, Any], Any]


def edited(parts: list[Any], was: Completion, now: Completion, how: PartFormat) -> list[Any]:
    """The parts with another text or other calls where those changed; everything else as it stood."""
    if was.text != now.text:
        olds = [part for part in parts if how.kind(part) == "text"]
        made = [how.text(now.text, olds[0] if olds else None)] if now.text else []
        parts = _placed(parts, "text", made, how)
    if was.tool_calls != now.tool_calls:
        parts = _placed(parts, "call", _calls(parts, now.tool_calls, how), how)
    return parts


def _calls(parts: list[Any], calls: Sequence[ToolCall], how: PartFormat) -> list[Any]:
    olds = [part for part in parts if how.kind(part) == "call"]
    return [how.call(call, olds[at] if at < len(olds) else None) for at, call in enumerate(calls)]


def _placed(parts: list[Any], kind: PartKind, new: list[Any], how: PartFormat) -> list[Any]:
    """The new parts where the first of their kind stood; else text before the calls, and calls last."""
    kinds = [how.kind(part) for part in parts]
    before = "call" if kind == "text" else ""
    at = next((i for i, found in enumerate(kinds) if found in (kind, before)), len(parts))
    kept = [part for part, found in zip(parts[at:], kinds[at:], strict=True) if found != kind]
    return [*parts[:at], *new, *kept]
