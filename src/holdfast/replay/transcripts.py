"""Converts plain JSON lines to sessions: chat transcripts (`messages`), or an input with other fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import decode_json, read_at, read_first, read_list, read_text, to_seconds
from holdfast.replay.foreign_messages import ASKED, read_messages
from holdfast.replay.foreign_trace import Found, ToolUse, build_session, find_last_tool_uses

SOURCE = "jsonl"
_IDS = ("id", "session_id", "trace_id", "conversation_id", "thread_id")
_TIMES = ("captured_at", "timestamp", "created_at", "start_time", "time")


def matches(document: Any) -> bool:
    """Return whether this is a transcript, or has an input."""
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(first, dict) and read_first(first, "messages", *ASKED) is not None


def read(document: Any, name: str) -> Iterator[Found]:
    """Yield a session for the document, or for each that it lists; `name` is for those without an id."""
    listed = document if isinstance(document, list) else [document]
    for n, transcript in enumerate(listed, 1):
        yield _build_session(transcript, name if len(listed) == 1 else f"{name}-{n}")


def _build_session(transcript: Any, name: str) -> Found:
    messages = read_messages(read_at(transcript, "messages"))
    # A transcript alone asks its last question; an input next to it is asked after it.
    is_asked = messages and read_first(transcript, *ASKED) is None
    return build_session(
        next((value for key in _IDS if (value := read_text(transcript, key))), name),
        (read_at(transcript, "messages") if is_asked else _add_context(transcript),),
        tuple(map(_build_tool_use, read_list(transcript, "tool_responses"))) or find_last_tool_uses([messages]),
        name=read_text(transcript, "name"),
        source=read_text(transcript, "source") or SOURCE,
        began=next((time for key in _TIMES if (time := to_seconds(read_at(transcript, key))) is not None), None),
        failure=read_text(transcript, "expected_failure") or read_text(transcript, "error"),
    )


def _add_context(transcript: Any) -> Any:
    """Return an input with the turns before it, which a session calls context."""
    if not isinstance(transcript, dict):
        return transcript
    history = read_first(transcript, "messages", "context", "chat_history", "history")
    question = {key: transcript[key] for key in ASKED if key in transcript}
    return {**question, **({"history": history} if read_messages(history) else {})}


def _build_tool_use(response: Any) -> ToolUse:
    status, latency = read_at(response, "status"), read_at(response, "latency_ms")
    has_status = isinstance(status, int) and not isinstance(status, bool)
    failed = has_status and (status == 0 or status >= 400)
    return ToolUse(
        name=read_text(response, "tool") or read_text(response, "name"),
        output=decode_json(read_at(response, "response")),
        error=f"status {status}" if failed else "",
        status=status if has_status else None,
        latency_ms=float(latency) if isinstance(latency, int | float) and not isinstance(latency, bool) else 0.0,
        arguments=read_at(response, "arguments"),
    )
