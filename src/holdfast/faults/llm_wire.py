"""Changes a model's reply on the wire: its beginning, its tool calls, its end."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.completion import Completion, Delta, EmptyChunk, Finish, FinishReason, Pause, Text, ToolCall, Usage
from holdfast.model.tokens import take_tokens
from holdfast.protocols.fault import Call


def require_completion(value: Any, mode: str) -> Completion:
    """Return the reply in its wire form; raises HarnessError for the result of a model function."""
    if isinstance(value, Completion):
        return value
    raise HarnessError(
        f"{mode} exists on the wire alone: a model function that returned {type(value).__name__} cannot meet it",
        code="fault-impossible",
    )


def is_streamed(call: Call) -> bool:
    """Whether the agent asked for a stream, which planes on the wire write into the call's arguments."""
    return bool(call.arguments.get("stream"))


def take_first_tokens(reply: Completion, tokens: int) -> tuple[Delta, ...]:
    """Return the deltas up to this many tokens of text, in their original chunks, without tool calls and end."""
    left = len(take_tokens(reply.text, tokens))
    deltas: list[Delta] = []
    for delta in reply.deltas:
        if isinstance(delta, Text):
            if len(delta.text) > left:
                return (*deltas, Text(delta.text[:left])) if left else tuple(deltas)
            left -= len(delta.text)
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
