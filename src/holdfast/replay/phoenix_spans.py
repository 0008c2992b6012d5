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
from holdfast.replay.foreign_messages import read_messages
from holdfast.replay.foreign_trace import ForeignTrace, Found, ToolUse, build_session, find_last_tool_uses

SOURCE = "phoenix"
_COLUMN = "attributes."
_NUMBERED = re.compile(r"llm\.input_messages\.(\d+)\.(?:message\.)?(.+)")


def matches(document: Any) -> bool:
    """Return whether this is one or more OpenInference spans."""
    listed = _list_spans(document)
    return bool(listed) and (bool(_read_kind(listed[0])) or bool(read_text(listed[0], "context", "trace_id")))


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace among the spans."""
    traces: defaultdict[str, list[Any]] = defaultdict(list)
    for span in _list_spans(document):
        traces[_read_context(span, "trace_id")].append(span)
    for id, spans in traces.items():
        yield build_session(
            _build_trace(id, sorted(spans, key=lambda span: to_seconds(read_at(span, "start_time")) or 0.0))
        )


def _list_spans(document: Any) -> list[Any]:
    if isinstance(document, list):
        return [span for span in document if isinstance(span, dict)]
    return (
        read_list(document, "data")
        or read_list(document, "spans")
        or ([document] if isinstance(document, dict) else [])
    )


def _build_trace(id: str, spans: list[Any]) -> ForeignTrace:
    span_ids = {_read_context(span, "span_id") for span in spans}
    roots = [span for span in spans if read_text(span, "parent_id") not in span_ids] or spans[:1]
    models = [span for span in spans if _read_kind(span) == "LLM"]
    tools = [_build_tool_use(span) for span in spans if _read_kind(span) == "TOOL"]
    # Tools without spans of their own: the last model call has their results in its messages.
    conversations = (read_messages(_read_input_messages(span)) for span in reversed(models))
    return ForeignTrace(
        id=id,
        asked=tuple(value for span in (*roots, *models) for value in _list_inputs(span)),
        tools=tuple(tools) or find_last_tool_uses(conversations),
        name=read_text(roots[0], "name"),
        source=SOURCE,
        began=to_seconds(read_at(roots[0], "start_time")),
        failure=next(filter(None, map(_read_failure, roots)), ""),
    )


def _list_inputs(span: Any) -> Iterator[Any]:
    if _read_kind(span) == "LLM":
        yield _read_input_messages(span)
    yield _read_attribute(span, "input.value")
    yield _read_input_messages(span)


def _build_tool_use(span: Any) -> ToolUse:
    return ToolUse(
        tool=read_text({"": _read_attribute(span, "tool.name")}, "") or read_text(span, "name"),
        output=decode_json(_read_attribute(span, "output.value")),
        error=_read_failure(span),
        latency_ms=compute_duration_ms(read_at(span, "start_time"), read_at(span, "end_time")),
        began=to_seconds(read_at(span, "start_time")) or 0.0,
        arguments=_read_attribute(span, "input.value"),
    )


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
