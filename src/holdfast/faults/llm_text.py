"""Finds and replaces the text in a model's reply. Never in place.

On the wire a reply is a Completion. The result of a model function may have any of the usual shapes; a streaming
function's reply is the list of its chunks, whose text counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.faults.values import (
    Path,
    get_part,
    is_record,
    is_rows,
    list_fields,
    list_parts,
    replace_items,
    replace_part,
)
from holdfast.model.completion import Completion, Delta, EmptyChunk, Finish, FinishReason, Pause, Text, ToolCall, Usage
from holdfast.model.shorten import take_tokens
from holdfast.protocols.fault import Call

EarlyEnd: TypeAlias = Literal["length", "content_filter"]
"""Why a reply ended before it was complete."""

_TEXT_FIELDS = ("choices", "content", "text", "output", "answer", "message", "delta")
_REASONS: tuple[tuple[Path, dict[EarlyEnd, str]], ...] = (
    (("choices", 0, "finish_reason"), {"length": "length", "content_filter": "content_filter"}),
    (("finish_reason",), {"length": "length", "content_filter": "content_filter"}),
    (("stop_reason",), {"length": "max_tokens", "content_filter": "refusal"}),
    (("done_reason",), {"length": "length", "content_filter": "stop"}),
    (("response_metadata", "finish_reason"), {"length": "length", "content_filter": "content_filter"}),
    (("response_metadata", "stop_reason"), {"length": "max_tokens", "content_filter": "refusal"}),
)
"""The fields in which providers say why a reply ended, and their words for it."""


class UnsupportedShape(HarnessError):
    """A model function returned a value without any text."""

    default_code = "fault-broken"

    def __init__(self, value: Any) -> None:
        kind = type(value)
        super().__init__(
            f"the model function returned {kind.__module__}.{kind.__qualname__}; "
            f"expected text, or a dict or object with one of {', '.join(_TEXT_FIELDS[:-1])}"
        )


def read_text(value: Any) -> str | None:
    """Return the text of a model's reply, with all its blocks joined.

    None if the reply has a field for text but no text.
    """
    if isinstance(value, Completion):
        return value.text if any(isinstance(delta, Text) for delta in value.deltas) else None
    paths = _find_text_paths(value)
    return "".join(get_part(value, path) for path in paths) if paths else None


def replace_text(value: Any, text: str) -> Any:
    """Return a copy of the reply with another text in its first block; the other blocks become empty.

    A reply without a field for text is returned unchanged.
    """
    if isinstance(value, Completion):
        return value.with_text(text)
    paths = _find_text_paths(value) or _find_paths(value, type(None))
    for path in paths[1:]:
        value = replace_part(value, path, "") if get_part(value, path) else value
    return replace_part(value, paths[0], text) if paths else value


def remove_calls(value: Any) -> Any:
    """Return a copy of the reply without tool calls, in any of the usual shapes; the same object if it has none."""
    if isinstance(value, Completion):
        if not value.tool_calls:
            return value
        deltas = tuple([delta for delta in value.deltas if not isinstance(delta, ToolCall)])
        return replace(value, deltas=deltas).with_finish("stop")
    for path, part in reversed(list_parts(value)):  # from the inside out, so that later paths stay valid
        if is_rows(part) and part and path and path[-1] == "tool_calls":
            value = replace_part(value, path, replace_items(part, []))
        elif is_rows(part) and any(map(_is_call, part)):
            value = replace_part(
                value,
                path,
                replace_items(get_part(value, path), [block for block in get_part(value, path) if not _is_call(block)]),
            )
    return value


def _is_call(block: Any) -> bool:
    return is_record(block) and dict(list_fields(block)).get("type") in ("tool_use", "function_call")


def set_early_end(value: Any, reason: EarlyEnd) -> Any:
    """Return a copy of the reply that says why it ended early, in its provider's field."""
    if isinstance(value, Completion):
        return value.with_finish(reason)
    if is_rows(value):
        # Only the last chunk of a stream says why it ended.
        return replace_items(value, [_set_end_reason(chunk, reason, also_null=False) for chunk in value])
    return _set_end_reason(value, reason, also_null=True)


def _set_end_reason(value: Any, reason: EarlyEnd, *, also_null: bool) -> Any:
    for path, words in _REASONS:
        if _has_path(value, path) and (also_null or get_part(value, path) is not None):
            value = replace_part(value, path, words[reason])
    return value


def _find_text_paths(value: Any) -> list[Path]:
    paths = _find_paths(value, str)
    if not paths and not _can_hold_text(value, top=True):
        raise UnsupportedShape(value)
    return paths


def _can_hold_text(value: Any, *, top: bool = False) -> bool:
    """Return whether a reply could hold text and does not: null content, no choices, only tool calls."""
    if is_rows(value):
        return not value or (any(map(_can_hold_text, value)) if top else all(map(is_record, value)))
    if not is_record(value):
        return value is None
    # A stream ends with an empty delta.
    return any(key == "delta" or (key in _TEXT_FIELDS and _can_hold_text(part)) for key, part in list_fields(value))


def _find_paths(value: Any, kind: type) -> list[Path]:
    """Return paths to the parts of that kind, through the first usual field that leads to any."""
    if isinstance(value, kind):
        return [()]
    if is_rows(value):
        return [(index, *path) for index, part in enumerate(value) for path in _find_paths(part, kind)]
    # Model functions return text, dicts and objects of any library. The first usual field that leads to text wins, so
    # that a text next to it, such as an id or a role, is not taken for the answer.
    by_name = dict(list_fields(value))
    for key in [key for key in _TEXT_FIELDS if key in by_name]:
        # Other choices are other answers.
        part = by_name[key][:1] if key == "choices" and is_rows(by_name[key]) else by_name[key]
        paths = _find_paths(part, kind)
        if paths:
            return [(key, *path) for path in paths]
    return []


def _has_path(value: Any, path: Path) -> bool:
    if not path:
        return True
    by_name = dict(list_fields(value))
    return path[0] in by_name and _has_path(by_name[path[0]], path[1:])


def require_completion(value: Any, mode: str) -> Completion:
    """Return the reply in its wire form; raise HarnessError for the result of a model function."""
    if isinstance(value, Completion):
        return value
    raise HarnessError(
        f"{mode} works only on the wire: a model function that returned {type(value).__name__} cannot meet it",
        code="fault-impossible",
    )


def is_streamed(call: Call) -> bool:
    """Return whether the agent asked for a stream; planes on the wire add that to the call's arguments."""
    return bool(call.arguments.get("stream"))


def take_first_tokens(reply: Completion, tokens: int) -> tuple[Delta, ...]:
    """Return the deltas up to this many tokens of text, in their original chunks, without tool calls and end."""
    # Counted in characters of the complete text, because a token may be split over two chunks and the chunks must stay
    # as the model sent them.
    remaining = len(take_tokens(reply.text, tokens))
    deltas: list[Delta] = []
    for delta in reply.deltas:
        if isinstance(delta, Text):
            if len(delta.text) > remaining:
                return (*deltas, Text(delta.text[:remaining])) if remaining else tuple(deltas)
            remaining -= len(delta.text)
        elif not isinstance(delta, EmptyChunk | Pause):
            break
        deltas.append(delta)
    return tuple(deltas)


def end_with(reply: Completion, deltas: Iterable[Delta], reason: FinishReason) -> Completion:
    """Return a reply of these deltas with this finish reason; the billed usage stays."""
    usage = [delta for delta in reply.deltas if isinstance(delta, Usage)]
    return replace(reply, deltas=(*deltas, Finish(reason), *usage))


def request_calls(reply: Completion, calls: Iterable[ToolCall]) -> Completion:
    """Replace the reply by one that requests these calls and has no text."""
    return end_with(reply, calls, "tool_calls")


def replace_calls(reply: Completion, calls: Iterable[ToolCall]) -> Completion:
    """Return the reply with its tool calls replaced."""
    new = iter(calls)
    deltas = tuple([next(new) if isinstance(delta, ToolCall) else delta for delta in reply.deltas])
    return replace(reply, deltas=deltas)


def create_call_id(rng: Random, like: str = "") -> str:
    """Return an id for a tool call, with the prefix of another one: providers never reuse an id."""
    prefix = like.rpartition("_")[0] or "call"
    return f"{prefix}_{rng.getrandbits(96):024x}"
