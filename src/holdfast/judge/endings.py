"""Describes endings: why there is no text to read."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.observation import Turn
from holdfast.model.plain_text import is_blank

_WORDS: Mapping[str, str] = {
    "answered": "the answer is empty",
    "no_answer": "the agent ended without one",
    "limit": "the agent was ended",
    "raised": "the agent raised an exception",
    "crashed": "the agent crashed",
    "out_of_memory": "the agent ran out of memory",
    "http_error": "the agent answered with an error",
    "closed": "the agent closed the connection",
    "unreadable": "the reply could not be read",
}


def describe_ending(turn: Turn, timeout_ms: int) -> str:
    """Return how the turn ended, to follow "no answer:"."""
    if turn.ending == "timeout":
        return f"timeout: {turn.detail}" if turn.cause == "trial-time" else f"timeout after {timeout_ms} ms"
    detail = turn.detail or (f"status {turn.status}" if turn.status is not None and turn.ending != "answered" else "")
    return f"{_WORDS[turn.ending]}: {detail}" if detail else _WORDS[turn.ending]


def has_text(turn: Turn) -> bool:
    """Whether there is anything to read besides whitespace."""
    return not is_blank(turn.text or "")
