"""The words for how a turn ended, shared by every sentence about an ending."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.observation import EndingKind, Turn
from holdfast.model.shorten import join_lines, shorten

DETAIL = 120
"""Maximum length of a detail: exceptions and stderr can be long."""
WORDS: Mapping[EndingKind, str] = {
    "answered": "the agent answered",
    "no_answer": "the agent ended without an answer",
    "timeout": "the agent timed out",
    "limit": "the agent exceeded a limit",
    "raised": "the agent raised an exception",
    "crashed": "the agent crashed",
    "out_of_memory": "the agent ran out of memory",
    "http_error": "the agent answered with an error",
    "closed": "the agent closed the connection",
    "unreadable": "the reply could not be read",
}


def describe_ending(turn: Turn, timeout_ms: int | None = None) -> str:
    """Return how the turn ended, as a clause."""
    words = WORDS[turn.ending]
    if turn.ending == "answered":
        return words if (turn.text or "").strip() else "the answer is empty"
    if turn.ending == "timeout" and timeout_ms is not None and turn.cause != "trial-time":
        return f"{words} after {timeout_ms} ms"
    status = "" if turn.status is None else f"status {turn.status}"
    detail = shorten(join_lines(turn.detail), DETAIL) or status
    if turn.ending == "raised" and detail:
        return f"the agent raised {detail}"
    return f"{words}: {detail}" if detail else words
