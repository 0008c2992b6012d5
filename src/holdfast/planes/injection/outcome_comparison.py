"""Compares outcomes of one call: whether the caller could distinguish them, and in what a fault changed one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast.model.canary import find_canaries
from holdfast.model.codec import make_encodable
from holdfast.model.completion import Completion, Cut, Delta, EmptyChunk, ErrorChunk, Finish, Pause, Text, ToolCall
from holdfast.model.delivery import Delivery
from holdfast.model.shorten import count_tokens
from holdfast.planes.describe import format_exception, is_same_value, render_value
from holdfast.protocols.fault import Call, Dropped, Failed, ReceivedReply, Receives, Reply, TimedOut

PIECE = 16
"""Length of a payload piece that must have arrived intact: a letter or two is not an attack."""

_PLAIN = re.compile(r"[^\"'\\\x00-\x1f\x7f]+")
"""Characters that look the same in plain text, in JSON and in Python's printed form."""

CallEnd: TypeAlias = Reply | BaseException
"""How a call ends: with a reply, or with an exception."""


def are_alike(one: CallEnd, other: CallEnd, call: Call, receives: Receives | None = None) -> bool:
    """Return whether the caller could not distinguish the two; `receives` converts a reply to the form in which it
    arrives.
    """
    if isinstance(one, Reply) and isinstance(other, Reply):
        # What the client receives decides, not the value inside: two values may be written as the same bytes (1.0 and 1
        # in a text), and one value may be cut in two places by two deliveries.
        received = render_received(one, receives), render_received(other, receives)
        if received[0] is not None and received[1] is not None:
            return _drop_size(one) == _drop_size(other) and received[0] == received[1]
        return one.delivery == other.delivery and are_values_alike(one.value, other.value, call)
    if isinstance(one, Failed) and isinstance(other, Failed):
        return (
            type(one) is type(other)
            and _build_failure_key(one) == _build_failure_key(other)
            and is_same_value(one.body, other.body)
        )
    if isinstance(one, Reply) or isinstance(other, Reply):
        return False
    return one is other or format_exception(one) == format_exception(other)


def are_values_alike(one: Any, other: Any, call: Call) -> bool:
    """Return whether the caller could not distinguish the values of two replies."""
    if is_same_value(one, other):
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Completion):
        streamed = bool(call.arguments.get("stream"))
        return normalize_reply(one, streamed=streamed) == normalize_reply(other, streamed=streamed)
    return _have_same_parts(one, other)


def render_received(reply: Reply, receives: Receives | None) -> ReceivedReply | None:
    """Return the reply as it arrives; None if that is the value itself, or if the value cannot be converted."""
    if receives is None:
        return None
    try:
        return receives(reply)
    except Exception:  # the plane will report it when it sends the reply
        return None


def read_end_text(end: CallEnd, receives: Receives | None) -> str:
    """Return the readable text of an outcome."""
    if not isinstance(end, Reply):
        return f"{format_exception(end)} {getattr(end, 'body', '')}"
    received = render_received(end, receives)
    if received is not None:
        return received.text
    value = end.value
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    return str.__str__(value) if isinstance(value, str) else render_value(value)


def _drop_size(reply: Reply) -> Delivery:
    return replace(reply.delivery, size=None)


def normalize_reply(reply: Completion, *, streamed: bool) -> Completion:
    """Return a model's reply without the details that a client cannot observe: how its text was split, and everything
    after a lost connection.

    A reply that is not streamed has no middle: it has no empty chunks, its pauses come first, and an error replaces it.
    """
    deltas = _list_visible(reply)
    if not streamed:
        deltas = _join_unstreamed(deltas)
    return replace(reply, deltas=tuple(_join_texts(deltas)), odd=reply.odd and streamed)


def _list_visible(reply: Completion) -> list[Delta]:
    """Return the deltas up to the end of the connection, without those of an omitted message."""
    deltas: list[Delta] = []
    for delta in reply.deltas:
        # A reply without choices or message carries no content on the wire, whatever is in its deltas; a fault that
        # changes only that content has changed nothing.
        hidden = isinstance(delta, Text | ToolCall | EmptyChunk) or (
            isinstance(delta, Finish) and reply.lacks == "choices"
        )
        if not (reply.lacks and hidden):
            deltas.append(delta)
        if isinstance(delta, Cut | ErrorChunk):
            break
    return deltas


def _join_unstreamed(deltas: list[Delta]) -> list[Delta]:
    wait_ms = sum(delta.ms for delta in deltas if isinstance(delta, Pause))
    pause: list[Delta] = [Pause(wait_ms)] if wait_ms else []
    errors: list[Delta] = [delta for delta in deltas if isinstance(delta, ErrorChunk)]
    return pause + (errors or [delta for delta in deltas if not isinstance(delta, Pause | EmptyChunk)])


def _join_texts(deltas: list[Delta]) -> list[Delta]:
    joined: list[Delta] = []
    for delta in deltas:
        last = joined[-1] if joined else None
        if isinstance(delta, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + delta.text)
        elif not isinstance(delta, Text) or delta.text:
            joined.append(delta)
    return joined


def _build_failure_key(failed: Failed) -> tuple[Any, ...]:
    raises = failed.injection.raises if failed.injection is not None else None
    return str(failed), failed.status, failed.kind, failed.retry_after_s, raises


def _have_same_parts(one: Any, other: Any) -> bool:
    """Return whether two containers have equal parts, including copies of objects without `__eq__`."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(_is_same_part(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return list(one) == list(other) and all(_is_same_part(part, other[key]) for key, part in one.items())
    return False


def _is_same_part(one: Any, other: Any) -> bool:
    return is_same_value(one, other) or (type(one) is type(other) and _have_same_parts(one, other))


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
        failure = text if text.startswith(status) else f"{status} {text}"
        what = f"injected timeout: {failure}" if isinstance(failed, TimedOut) else f"injected {failure}"
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
    # Common ends first, so that the difference is one piece in the middle: an insertion, a removal, or a replacement.
    # Two texts that share almost nothing are shown whole instead.
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


def has_arrived(payload: str, text: str) -> bool:
    """Return whether a canary of the payload, or a piece of its text, arrived."""
    return any(piece in text for piece in _split_payload(payload))


def _split_payload(payload: str) -> list[str]:
    words = find_canaries(payload)
    for word in words:  # they differ from those of other attacks only in their last letters
        payload = payload.replace(word, "\n")
    # The reply may carry the payload escaped, as JSON or as a Python literal. Pieces without quotes, backslashes and
    # control characters look the same in every notation, so a plain substring search finds them.
    runs = _PLAIN.findall(payload)
    pieces = [run[at : at + PIECE] for run in runs for at in range(0, len(run) - PIECE + 1, PIECE)]
    return words + pieces or sorted(runs, key=len)[-1:] or [payload]
