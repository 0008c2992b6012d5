"""Converts plain JSON lines to sessions: chat transcripts (`messages`), or an input with other fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import at, decoded, first, items, seconds, text
from holdfast.replay.foreign_messages import ASKED, after_question, messages
from holdfast.replay.foreign_trace import ForeignTrace, Found, ToolUse, session_of, tools_in_messages

SOURCE = "jsonl"
_IDS = ("id", "session_id", "trace_id", "conversation_id", "thread_id")
_TIMES = ("captured_at", "timestamp", "created_at", "start_time", "time")


def matches(document: Any) -> bool:
    """Whether this is a transcript, or has an input."""
    one = document[0] if isinstance(document, list) and document else document
    return isinstance(one, dict) and first(one, "messages", *ASKED) is not None


def read(document: Any, name: str) -> Iterator[Found]:
    """A session for the document, or for each that it lists; `name` is for those without an id."""
    listed = document if isinstance(document, list) else [document]
    for n, one in enumerate(listed, 1):
        yield session_of(_trace(one, name if len(listed) == 1 else f"{name}-{n}"))


def _trace(one: Any, name: str) -> ForeignTrace:
    spoken = messages(at(one, "messages"))
    # A transcript alone asks its last question; an input next to it is asked after it.
    is_asked = spoken and first(one, *ASKED) is None
    return ForeignTrace(
        id=next((value for key in _IDS if (value := text(one, key))), name),
        asked=(at(one, "messages") if is_asked else _with_context(one),),
        tools=tuple(map(_response, items(one, "tool_responses"))) or tools_in_messages(after_question(spoken)),
        name=text(one, "name"),
        source=text(one, "source") or SOURCE,
        began=next((time for key in _TIMES if (time := seconds(at(one, key))) is not None), None),
        failure=text(one, "expected_failure") or text(one, "error"),
    )


def _with_context(one: Any) -> Any:
    """An input with the turns before it, which a session calls context."""
    if not isinstance(one, dict):
        return one
    history = first(one, "messages", "context", "chat_history", "history")
    question = {key: one[key] for key in ASKED if key in one}
    return {**question, **({"history": history} if messages(history) else {})}


def _response(one: Any) -> ToolUse:
    status = at(one, "status")
    known = isinstance(status, int) and not isinstance(status, bool)
    failed = known and (status == 0 or status >= 400)
    return ToolUse(
        tool=text(one, "tool") or text(one, "name"),
        output=decoded(at(one, "response")),
        error=f"status {status}" if failed else "",
        status=status if known else None,
        latency_ms=_number(at(one, "latency_ms")),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
