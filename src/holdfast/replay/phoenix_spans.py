"""Converts Phoenix spans to sessions: OpenInference attributes, flat or nested, from its API or an export."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import (
    compute_duration_ms,
    decode_json,
    group_numbered,
    read_at,
    read_list,
    read_text,
    to_seconds,
)
from holdfast.replay.foreign_trace import Found, TraceStep, build_sessions

SOURCE = "phoenix"
_COLUMN = "attributes."
_NUMBERED = re.compile(r"llm\.input_messages\.(\d+)\.(?:message\.)?(.+)")


def matches(document: Any) -> bool:
    """Return whether this is one or more OpenInference spans."""
    listed = _list_spans(document)
    return bool(listed) and (bool(_read_kind(listed[0])) or bool(read_text(listed[0], "context", "trace_id")))


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace among the spans."""
    return build_sessions(map(_build_step, _list_spans(document)), SOURCE)


def _list_spans(document: Any) -> list[Any]:
    if isinstance(document, list):
        return [span for span in document if isinstance(span, dict)]
    return (
        read_list(document, "data")
        or read_list(document, "spans")
        or ([document] if isinstance(document, dict) else [])
    )


def _build_step(span: Any) -> TraceStep:
    kind = _read_kind(span)
    tool = read_text({"": _read_attribute(span, "tool.name")}, "") if kind == "TOOL" else ""
    return TraceStep(
        trace=_read_context(span, "trace_id"),
        id=_read_context(span, "span_id"),
        parent=read_text(span, "parent_id"),
        name=tool or read_text(span, "name"),
        kind="model" if kind == "LLM" else "tool" if kind == "TOOL" else "",
        inputs=tuple(_list_inputs(span)),
        output=decode_json(_read_attribute(span, "output.value")),
        arguments=_read_attribute(span, "input.value"),
        error=_read_failure(span),
        began=to_seconds(read_at(span, "start_time")) or 0.0,
        latency_ms=compute_duration_ms(read_at(span, "start_time"), read_at(span, "end_time")),
    )


def _list_inputs(span: Any) -> Iterator[Any]:
    if _read_kind(span) == "LLM":
        yield _read_input_messages(span)
    yield _read_attribute(span, "input.value")
    yield _read_input_messages(span)


def _read_failure(span: Any) -> str:
    if read_text(span, "status_code").upper() not in ("ERROR", "2"):
        return ""
    message = next((read_text(event, "attributes", "exception.message") for event in read_list(span, "events")), "")
    return read_text(span, "status_message") or message or "error"


def _read_kind(span: Any) -> str:
    kind = _read_attribute(span, "openinference.span.kind")
    return (kind if isinstance(kind, str) else read_text(span, "span_kind")).upper()


def _read_context(span: Any, key: str) -> str:
    return read_text(span, "context", key) or read_text(span, f"context.{key}") or read_text(span, key)


def _read_attribute(span: Any, name: str) -> Any:
    """Return an attribute by its dotted name: flat, nested, or a column of a table."""
    if isinstance(span, dict) and f"{_COLUMN}{name}" in span:
        return span[f"{_COLUMN}{name}"]
    attributes = decode_json(read_at(span, "attributes"))
    if isinstance(attributes, dict) and name in attributes:
        return attributes[name]
    return read_at(attributes, *name.split("."))


def _read_input_messages(span: Any) -> list[Any]:
    """Return the messages as a list, or from attributes such as `llm.input_messages.0.message.role`."""
    messages_sent = decode_json(_read_attribute(span, "llm.input_messages"))
    if isinstance(messages_sent, list):
        return messages_sent
    return [_build_message(flat) for flat in group_numbered(read_at(span, "attributes"), _NUMBERED)]


def _build_message(flat: dict[str, Any]) -> dict[str, Any]:
    """Return a message from flat keys: its text may be in parts, its tool calls are numbered."""
    parts = [value for key, value in sorted(flat.items()) if key.startswith("contents.") and key.endswith(".text")]
    message = {key: value for key, value in flat.items() if "." not in key}
    calls: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in flat.items():
        part = re.fullmatch(r"tool_calls\.(\d+)\.tool_call\.(id|function\.name)", key)
        if part is not None:
            calls[part[1]]["id" if part[2] == "id" else "name"] = value
    if parts:
        message["content"] = "\n".join(map(str, parts))
    if calls:
        message["tool_calls"] = [calls[n] for n in sorted(calls)]
    return {"content": "", **message}
