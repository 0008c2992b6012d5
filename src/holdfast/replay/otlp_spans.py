"""Converts OpenTelemetry traces in OTLP JSON to sessions, by the GenAI conventions for attributes and events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
from holdfast.replay.foreign_trace import Found, TraceStep, TraceStepKind, build_sessions

SOURCE = "opentelemetry"
_MODEL = ("chat", "text_completion", "generate_content", "completion")
_AGENT = ("invoke_agent", "create_agent", "invoke_workflow")
_MESSAGE_EVENT = re.compile(r"gen_ai\.(user|system|assistant|tool)\.message")
_Event = tuple[str, dict[str, Any]]
"""The name of a span's event, and its fields."""
_INDEXED = re.compile(r"gen_ai\.prompt\.(\d+)\.(role|content)")


def matches(document: Any) -> bool:
    """Return whether this is one or more export requests."""
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(read_at(first, "resourceSpans") or read_at(first, "resource_spans"), list)


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace in it."""
    requests = document if isinstance(document, list) else [document]
    steps = (_build_step(span) for request in requests for span in _list_spans(request))
    return build_sessions(steps, SOURCE, ("agent", "model", "root"))


def _list_spans(document: Any) -> Iterator[dict[str, Any]]:
    for resource in read_list(document, "resourceSpans") or read_list(document, "resource_spans"):
        for scope in read_list(resource, "scopeSpans") or read_list(resource, "scope_spans"):
            yield from (span for span in read_list(scope, "spans") if isinstance(span, dict))


def _build_step(span: dict[str, Any]) -> TraceStep:
    began, ended = read_at(span, "startTimeUnixNano"), read_at(span, "endTimeUnixNano")
    attributes, name = _read_attributes(span), read_text(span, "name")
    events = [(read_text(event, "name"), _read_event(event)) for event in read_list(span, "events")]
    operation = read_text(attributes, "gen_ai.operation.name") or name.partition(" ")[0]
    error, status = _read_error(span, attributes), read_at(attributes, "http.response.status_code")
    kind: TraceStepKind = "agent" if operation in _AGENT else "model" if operation in _MODEL else ""
    if operation == "execute_tool" or "gen_ai.tool.name" in attributes:
        kind, name = "tool", read_text(attributes, "gen_ai.tool.name") or name.partition(" ")[2] or name
        code = read_text(attributes, "error.type")
        error, status = error or code, int(code) if re.fullmatch(r"\d{3}", code) else status
    return TraceStep(
        trace=read_text(span, "traceId") or read_text(span, "trace_id"),
        id=read_text(span, "spanId") or read_text(span, "span_id"),
        parent=read_text(span, "parentSpanId") or read_text(span, "parent_span_id"),
        name=(read_text(attributes, "gen_ai.agent.name") if kind != "tool" else "") or name,
        kind=kind,
        inputs=tuple(_list_inputs(attributes, events)),
        output=decode_json(_find_result(attributes, events)),
        arguments=attributes.get("gen_ai.tool.call.arguments"),
        error=error,
        status=status if isinstance(status, int) else None,
        began=to_seconds(began) or 0.0,
        latency_ms=compute_duration_ms(began, ended),
    )


def _find_result(attributes: dict[str, Any], events: Iterable[_Event]) -> Any:
    for key in ("gen_ai.tool.call.result", "gen_ai.tool.result"):
        if attributes.get(key) is not None:
            return attributes[key]
    return next((body["content"] for _, body in events if "content" in body), None)


def _list_inputs(attributes: dict[str, Any], events: Sequence[_Event]) -> Iterator[Any]:
    """Yield the places where a span's input messages may be, newest convention first."""
    yield attributes.get("gen_ai.input.messages")
    for name, body in events:
        if name == "gen_ai.client.inference.operation.details":
            yield body.get("gen_ai.input.messages")
        if name == "gen_ai.content.prompt":
            yield body.get("gen_ai.prompt")
    separate = [(match[1], body) for name, body in events if (match := _MESSAGE_EVENT.fullmatch(name))]
    yield [{"role": read_text(body, "role") or role, **body} for role, body in separate]
    yield group_numbered(attributes, _INDEXED)
    yield from (attributes.get(key) for key in ("gen_ai.prompt", "input.value", "traceloop.entity.input"))


def _read_error(span: dict[str, Any], attributes: dict[str, Any]) -> str:
    """Return why the span failed; empty if it succeeded."""
    if read_at(span, "status", "code") not in (2, "2", "STATUS_CODE_ERROR"):
        return ""
    raised = (_read_attributes(event) for event in read_list(span, "events") if read_text(event, "name") == "exception")
    exception = next((read_text(one, "exception.message") or read_text(one, "exception.type") for one in raised), "")
    return read_text(span, "status", "message") or read_text(attributes, "error.type") or exception or "error"


def _read_event(event: Any) -> dict[str, Any]:
    """Return its attributes, and its body's fields if it was a log record."""
    body = _convert_value(read_at(event, "body"))
    return {**(body if isinstance(body, dict) else {}), **_read_attributes(event)}


def _read_attributes(holder: Any) -> dict[str, Any]:
    return {
        read_text(entry, "key"): _convert_value(read_at(entry, "value")) for entry in read_list(holder, "attributes")
    }


def _convert_value(value: Any) -> Any:
    """Return a typed OTLP value as a plain one."""
    if not isinstance(value, dict):
        return value
    if "arrayValue" in value:
        return [_convert_value(item) for item in read_list(value, "arrayValue", "values")]
    if "kvlistValue" in value:
        return {
            read_text(entry, "key"): _convert_value(read_at(entry, "value"))
            for entry in read_list(value, "kvlistValue", "values")
        }
    if "intValue" in value:
        number = read_text(value, "intValue")
        return int(number) if number.lstrip("-").isdigit() else number
    return next((value[key] for key in ("stringValue", "doubleValue", "boolValue", "bytesValue") if key in value), None)
