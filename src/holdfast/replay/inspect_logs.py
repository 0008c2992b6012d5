"""Converts logs of Inspect AI to sessions: each sample's conversation, and its tools' answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import compute_duration_ms, decode_json, read_at, read_list, read_text, to_seconds
from holdfast.replay.foreign_messages import join_content, read_messages
from holdfast.replay.foreign_trace import (
    Found,
    LeftOutTrace,
    ToolUse,
    TraceUnreadable,
    build_session,
    list_tool_uses,
)

SOURCE = "inspect"
VERSION = 2
"""The log format's version, as Inspect AI 0.3.285 writes it."""
_ATTACHED = "attachment://"
_DEEPEST = 20
_WRONG = ("I", "N", 0, 0.0, False)
"""Values of a score that mean a wrong answer: incorrect, no answer."""


def matches(document: Any) -> bool:
    """Return whether this is an evaluation log."""
    version = read_at(document, "version")
    return (
        isinstance(read_at(document, "eval"), dict)
        and isinstance(version, int)
        and bool(read_text(document, "eval", "task"))
    )


def read(document: Any, name: str) -> Iterator[Found]:
    """Yield a session for every sample; raise UserError for a log of a later format, or without samples."""
    if document["version"] > VERSION:
        raise TraceUnreadable(
            f"{name}: a log of format {document['version']}, and {VERSION} is the latest version that Holdfast knows",
            hint="update Holdfast, or write the log with an earlier Inspect",
        )
    if not isinstance(read_at(document, "samples"), list):
        raise TraceUnreadable(f"{name}: the log has no samples", hint="log them: inspect eval --log-samples")
    task = read_text(document, "eval", "task")
    for sample in read_list(document, "samples"):
        if isinstance(sample, dict):
            yield _build_session(task, sample)
        else:
            yield LeftOutTrace(name, "a sample that is not a JSON object")


def _build_session(task: str, sample: dict[str, Any]) -> Found:
    attached = read_at(sample, "attachments")
    resolved = _resolve_attachments({key: sample.get(key) for key in ("input", "messages", "events")}, attached)
    epoch = read_at(sample, "epoch")
    suffix = f"-epoch-{epoch}" if isinstance(epoch, int) and epoch > 1 else ""
    called = [_build_tool_use(event) for event in read_list(resolved, "events") if read_text(event, "event") == "tool"]
    return build_session(
        f"{task.rpartition('/')[2]}-{read_text(sample, 'id')}{suffix}",
        (read_at(resolved, "input"), read_at(resolved, "messages")),
        tuple(called) or list_tool_uses(read_messages(read_at(resolved, "messages"))),
        name=task,
        source=SOURCE,
        began=to_seconds(read_at(sample, "started_at")),
        failure=read_text(sample, "error", "message") or _format_failure(read_at(sample, "scores")),
    )


def _build_tool_use(event: Any) -> ToolUse:
    answer = read_at(event, "result")
    error = read_text(event, "error", "message")
    return ToolUse(
        name=read_text(event, "function"),
        output=decode_json(join_content(answer) if isinstance(answer, list) else answer),
        error=f"{read_text(event, 'error', 'type')}: {error}".removeprefix(": ") if read_at(event, "error") else "",
        latency_ms=compute_duration_ms(read_at(event, "timestamp"), read_at(event, "completed")),
        began=to_seconds(read_at(event, "timestamp")) or 0.0,
        arguments=read_at(event, "arguments"),
    )


def _format_failure(scores: Any) -> str:
    """Return the first scorer with a bad score, as a sentence."""
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = read_at(score, "value")
        if isinstance(value, str | int | float) and value in _WRONG:
            return f"{name}: {value}: {read_text(score, 'answer') or read_text(score, 'explanation')}".rstrip(": ")
    return ""


def _resolve_attachments(value: Any, attached: Any, depth: int = 0) -> Any:
    """Return the value with references replaced by their texts: Inspect stores long ones separately."""
    if not isinstance(attached, dict) or not attached or depth > _DEEPEST:
        return value
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, dict):
        return {key: _resolve_attachments(inner, attached, depth + 1) for key, inner in value.items()}
    return [_resolve_attachments(inner, attached, depth + 1) for inner in value] if isinstance(value, list) else value
