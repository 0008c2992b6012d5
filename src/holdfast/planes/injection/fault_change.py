"""Describes on one line what a fault changed in a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.model.codec import make_encodable
from holdfast.model.completion import Completion
from holdfast.model.shorten import count_tokens
from holdfast.planes.describe import render_value
from holdfast.protocols.fault import Dropped, Failed, TimedOut

_SHOWN = 160
"""Characters of a text on either side: enough for an injected instruction."""
_FIELDS = 3
"""Number of changed fields that are listed; the others are only counted."""
_IN_COMMON = 4
"""Characters that two texts must share at their ends for one to be an edit of the other."""
_SHORT = 40
"""Maximum length of a text that is shown together with its replacement."""
_OPENING = "<([{"
_CALLEES = {"tool": "tool", "mcp": "tool", "llm": "model"}
"""The called party, by plane. On `tool_result` the tool has always run; the note of the firing says so."""


def describe_change(before: Any, after: Any) -> str:
    """Describe a change: `+ "ignore previous …"`, `cut after 6 of 41 tokens`, `price: 12.5 → "12.5"`."""
    if isinstance(before, Completion) and isinstance(after, Completion):
        before, after = before.display_text, after.display_text
    changes = list(_iterate_changes(before, after, ""))
    # The text that gained most comes first: an injected instruction matters more than a finish reason.
    changes.sort(key=lambda change: -change[0])
    words = [text for _, text in changes[:_FIELDS]]
    more = f"; and {len(changes) - _FIELDS} more" if len(changes) > _FIELDS else ""
    return make_encodable("; ".join(words) + more)


def describe_failure(failed: Failed, plane: str, *, was_called: bool) -> str:
    """Describe a failure: `injected 503 Service Unavailable (the tool was not called)`, or `reply lost`."""
    if isinstance(failed, Dropped):
        what = "reply lost" if was_called else "connection dropped"
    else:
        text, status = str(failed), "" if failed.status is None else str(failed.status)
        known = text if text.startswith(status) else f"{status} {text}"
        what = f"injected timeout: {known}" if isinstance(failed, TimedOut) else f"injected {known}"
    return make_encodable(what + _describe_callee(plane, was_called))


def _describe_callee(plane: str, was_called: bool) -> str:
    if plane == "http":
        return " (the request was sent)" if was_called else " (the request was not sent)"
    callee = _CALLEES.get(plane)
    if callee is None:
        return ""
    return f" (the {callee} ran)" if was_called else f" (the {callee} was not called)"


def _iterate_changes(before: Any, after: Any, path: str) -> Iterator[tuple[int, str]]:
    """Yield each field that differs: how many characters it gained or lost, and the difference."""
    if isinstance(before, str) and isinstance(after, str):
        if before != after:
            yield abs(len(after) - len(before)), _prefix_path(path, _describe_text_change(before, after))
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            inner = f"{path}.{name}" if path else str(name)
            if name not in after:
                yield 0, f"- {inner}"
            elif name not in before:
                yield len(render_value(after[name])), f"+ {inner}: {_format_excerpt(after[name])}"
            else:
                yield from _iterate_changes(before[name], after[name], inner)
    elif _is_list(before) and _is_list(after) and len(before) == len(after):
        for n, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _iterate_changes(one, other, f"{path}[{n}]")
    elif render_value(before) != render_value(after):
        yield 0, _prefix_path(path, f"{_format_excerpt(before)} → {_format_excerpt(after)}")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _prefix_path(path: str, change: str) -> str:
    return f"{path}: {change}" if path else change


def _describe_text_change(before: str, after: str) -> str:
    if before.startswith(after):
        return f"cut after {count_tokens(after)} of {count_tokens(before)} tokens"
    start = _measure_common_prefix(before, after)
    end = _measure_common_prefix(before[start:][::-1], after[start:][::-1])
    if start + end < _IN_COMMON:
        return (
            f"{_format_excerpt(before)} → {_format_excerpt(after)}"
            if len(before) <= _SHORT
            else f"replaced by {_format_excerpt(after)}"
        )
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    if not removed:
        while added[-1] in _OPENING and before[start - 1 : start] == added[-1]:
            # `<!-- x -->` before `<p>`: both begin with `<`, so the comparison finds the insertion one character too
            # late.
            added, start = added[-1] + added[:-1], start - 1
        return f"+ {_format_excerpt(added.strip() or added)}"
    return f"- {_format_excerpt(removed)}" if not added else f"{_format_excerpt(removed)} → {_format_excerpt(added)}"


def _measure_common_prefix(one: str, other: str) -> int:
    """Measure the common prefix by bisection, because a reply may have millions of characters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _format_excerpt(value: Any) -> str:
    """Return the beginning of a value, where the difference starts."""
    text = f'"{value}"' if isinstance(value, str) else render_value(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
