"""Converts logs of Inspect AI to sessions: each sample's conversation, and its tools' answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.errors import UserError
from holdfast.replay.foreign_json import at, decoded, items, lasted_ms, seconds, text
from holdfast.replay.foreign_messages import content_text, messages
from holdfast.replay.foreign_trace import ForeignTrace, Found, LeftOutTrace, ToolUse, session_of, tools_in_messages

SOURCE = "inspect"
VERSION = 2
"""The log format's version, as Inspect AI 0.3.285 writes it."""
_ATTACHED = "attachment://"
_DEEPEST = 20
_WRONG = ("I", "N", 0, 0.0, False)
"""Values of a score that mean a wrong answer: incorrect, no answer."""


def matches(document: Any) -> bool:
    """Whether this is an evaluation log."""
    version = at(document, "version")
    return isinstance(at(document, "eval"), dict) and isinstance(version, int) and bool(text(document, "eval", "task"))


def read(document: Any, name: str) -> Iterator[Found]:
    """A session for every sample; UserError for a log of a later format, or without samples."""
    if document["version"] > VERSION:
        raise UserError(
            f"{name}: a log of format {document['version']}, and {VERSION} is the latest that is known",
            hint="update Holdfast, or write the log with an earlier Inspect",
            code="trace-unreadable",
        )
    if not isinstance(at(document, "samples"), list):
        raise UserError(
            f"{name}: the log has no samples", hint="log them: inspect eval --log-samples", code="trace-unreadable"
        )
    task = text(document, "eval", "task")
    for sample in items(document, "samples"):
        if isinstance(sample, dict):
            yield session_of(_trace(task, sample))
        else:
            yield LeftOutTrace(name, "a sample that is not a JSON object")


def _trace(task: str, sample: dict[str, Any]) -> ForeignTrace:
    attached = at(sample, "attachments")
    whole = _resolved({key: sample.get(key) for key in ("input", "messages", "events")}, attached)
    epoch = at(sample, "epoch")
    again = f"-epoch-{epoch}" if isinstance(epoch, int) and epoch > 1 else ""
    called = [_tool(event) for event in items(whole, "events") if text(event, "event") == "tool"]
    return ForeignTrace(
        id=f"{task.rpartition('/')[2]}-{text(sample, 'id')}{again}",
        asked=(at(whole, "input"), at(whole, "messages")),
        tools=tuple(called) or tools_in_messages(messages(at(whole, "messages"))),
        name=task,
        source=SOURCE,
        began=seconds(at(sample, "started_at")),
        failure=text(sample, "error", "message") or _failure(at(sample, "scores")),
    )


def _tool(event: Any) -> ToolUse:
    answer = at(event, "result")
    error = text(event, "error", "message")
    return ToolUse(
        tool=text(event, "function"),
        output=decoded(content_text(answer) if isinstance(answer, list) else answer),
        error=f"{text(event, 'error', 'type')}: {error}".removeprefix(": ") if at(event, "error") else "",
        latency_ms=lasted_ms(at(event, "timestamp"), at(event, "completed")),
        began=seconds(at(event, "timestamp")) or 0.0,
    )


def _failure(scores: Any) -> str:
    """The first scorer with a bad score, as a sentence."""
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = at(score, "value")
        if isinstance(value, str | int | float) and value in _WRONG:
            return f"{name}: {value}: {text(score, 'answer') or text(score, 'explanation')}".rstrip(": ")
    return ""


def _resolved(value: Any, attached: Any, depth: int = 0) -> Any:
    """The value with references replaced by their texts: Inspect stores long ones separately."""
    if not isinstance(attached, dict) or not attached or depth > _DEEPEST:
        return value
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, dict):
        return {key: _resolved(one, attached, depth + 1) for key, one in value.items()}
    return [_resolved(one, attached, depth + 1) for one in value] if isinstance(value, list) else value
