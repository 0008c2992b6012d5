"""Decides whether the caller could distinguish two outcomes of one call."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast.model.completion import Completion, Cut, Delta, EmptyChunk, ErrorChunk, Finish, Pause, Text, ToolCall
from holdfast.model.delivery import Delivery
from holdfast.planes.describe import format_exception, is_same_value, render_value
from holdfast.protocols.fault import Call, Failed, ReceivedReply, Receives, Reply

CallEnd: TypeAlias = Reply | BaseException
"""How a call ends: with a reply, or with an exception."""


def are_alike(one: CallEnd, other: CallEnd, call: Call, receives: Receives | None = None) -> bool:
    """Return whether the caller could not distinguish the two; `receives` converts a reply to the form in which it
    arrives.
    """
    if isinstance(one, Reply) and isinstance(other, Reply):
        got = render_received(one, receives), render_received(other, receives)
        if got[0] is not None and got[1] is not None:
            return _drop_size(one) == _drop_size(other) and got[0] == got[1]
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
    got = render_received(end, receives)
    if got is not None:
        return got.text
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
    troubles: list[Delta] = [delta for delta in deltas if isinstance(delta, ErrorChunk)]
    return pause + (troubles or [delta for delta in deltas if not isinstance(delta, Pause | EmptyChunk)])


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
