"""Converts OpenTelemetry traces in OTLP JSON to sessions, by the GenAI conventions for attributes and events."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

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

SOURCE = "opentelemetry"
_MODEL = ("chat", "text_completion", "generate_content", "completion")
_AGENT = ("invoke_agent", "create_agent", "invoke_workflow")
_MESSAGE_EVENT = re.compile(r"gen_ai\.(user|system|assistant|tool)\.message")
_INDEXED = re.compile(r"gen_ai\.prompt\.(\d+)\.(role|content)")


class OtlpSpan(Struct, frozen=True):
    """One span with its attributes and events as plain values."""

    trace: str
    id: str
    parent: str
    name: str
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...] = ()
    began: float = 0.0
    latency_ms: float = 0.0
    failure: str = ""

    @property
    def operation(self) -> str:
        name = read_text(self.attributes, "gen_ai.operation.name")
        return name or self.name.partition(" ")[0]

    @property
    def is_tool(self) -> bool:
        return self.operation == "execute_tool" or "gen_ai.tool.name" in self.attributes


def matches(document: Any) -> bool:
    """Return whether this is one or more export requests."""
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(read_at(first, "resourceSpans") or read_at(first, "resource_spans"), list)


def read(document: Any) -> Iterator[Found]:
    """Return a session for every trace in it."""
    return build_sessions(
        span for request in (document if isinstance(document, list) else [document]) for span in _list_spans(request)
    )


def build_sessions(spans: Iterable[OtlpSpan]) -> Iterator[Found]:
    traces: defaultdict[str, list[OtlpSpan]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    for trace, inside in traces.items():
        yield build_session(_build_trace(trace, sorted(inside, key=lambda span: span.began)))


def _build_trace(id: str, spans: list[OtlpSpan]) -> ForeignTrace:
    span_ids = {span.id for span in spans}
    roots = [span for span in spans if span.parent not in span_ids] or spans[:1]
    agents = [span for span in spans if span.operation in _AGENT]
    models = [span for span in spans if span.operation in _MODEL]
    asking = [*agents, *models, *roots]
    tools = [_build_tool_use(span) for span in _list_outer_tools(spans)]
    root = (agents or roots)[0]
    # Tools without spans of their own: the last model call has their results in its messages.
    conversations = (read_messages(value) for span in reversed(models) for value in _list_inputs(span))
    return ForeignTrace(
        id=id,
        asked=tuple(value for span in asking for value in _list_inputs(span)),
        tools=tuple(tools) or find_last_tool_uses(conversations),
        name=read_text(root.attributes, "gen_ai.agent.name") or root.name,
        source=SOURCE,
        began=root.began or None,
        failure=root.failure or next((span.failure for span in roots if span.failure), ""),
    )


def _list_outer_tools(spans: list[OtlpSpan]) -> Iterator[OtlpSpan]:
    """Yield the tools that the agent called: an MCP span may be nested in one, and is the same call."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        above, visited = by_id.get(span.parent), {span.id}
        while above is not None and not above.is_tool and above.id not in visited:
            visited.add(above.id)
            above = by_id.get(above.parent)
        if span.is_tool and (above is None or not above.is_tool):
            yield span


def _build_tool_use(span: OtlpSpan) -> ToolUse:
    attributes = span.attributes
    status = read_at(attributes, "http.response.status_code")
    error = span.failure
    kind = read_text(attributes, "error.type")
    if kind:
        error = error or kind
        status = int(kind) if kind.isdigit() and len(kind) == 3 else status
    name = read_text(attributes, "gen_ai.tool.name") or span.name.partition(" ")[2] or span.name
    result = next(
        (attributes[key] for key in ("gen_ai.tool.call.result", "gen_ai.tool.result") if key in attributes), None
    )
    if result is None:
        result = next((body for _, body in span.events if "content" in body), {}).get("content")
    return ToolUse(
        name,
        decode_json(result),
        error,
        status if isinstance(status, int) else None,
        span.latency_ms,
        span.began,
        attributes.get("gen_ai.tool.call.arguments"),
    )


def _list_inputs(span: OtlpSpan) -> Iterator[Any]:
    """Yield the places where a span's input messages may be, newest convention first."""
    attributes = span.attributes
    yield attributes.get("gen_ai.input.messages")
    for name, body in span.events:
        if name == "gen_ai.client.inference.operation.details":
            yield body.get("gen_ai.input.messages")
        if name == "gen_ai.content.prompt":
            yield body.get("gen_ai.prompt")
    yield _read_message_events(span)
    yield group_numbered(attributes, _INDEXED)
    yield from (attributes.get(key) for key in ("gen_ai.prompt", "input.value", "traceloop.entity.input"))


def _read_message_events(span: OtlpSpan) -> list[dict[str, Any]]:
    """Return the messages that are separate events."""
    messages = []
    for name, body in span.events:
        kind = _MESSAGE_EVENT.fullmatch(name)
        if kind is not None:
            messages.append({"role": read_text(body, "role") or kind[1], **body})
    return messages


def _list_spans(document: Any) -> Iterator[OtlpSpan]:
    for resource in read_list(document, "resourceSpans") or read_list(document, "resource_spans"):
        for scope in read_list(resource, "scopeSpans") or read_list(resource, "scope_spans"):
            yield from (_build_span(span) for span in read_list(scope, "spans") if isinstance(span, dict))


def _build_span(span: dict[str, Any]) -> OtlpSpan:
    begun, ended = read_at(span, "startTimeUnixNano"), read_at(span, "endTimeUnixNano")
    status = read_at(span, "status")
    attributes = _read_attributes(span)
    failed = read_at(status, "code") in (2, "2", "STATUS_CODE_ERROR")
    error = read_text(status, "message") or read_text(attributes, "error.type") or _find_exception(span) or "error"
    return OtlpSpan(
        trace=read_text(span, "traceId") or read_text(span, "trace_id"),
        id=read_text(span, "spanId") or read_text(span, "span_id"),
        parent=read_text(span, "parentSpanId") or read_text(span, "parent_span_id"),
        name=read_text(span, "name"),
        attributes=attributes,
        events=tuple((read_text(event, "name"), _read_event(event)) for event in read_list(span, "events")),
        began=to_seconds(begun) or 0.0,
        latency_ms=compute_duration_ms(begun, ended),
        failure=error if failed else "",
    )


def _find_exception(span: dict[str, Any]) -> str:
    exceptions = [
        _read_attributes(event) for event in read_list(span, "events") if read_text(event, "name") == "exception"
    ]
    return next((read_text(body, "exception.message") or read_text(body, "exception.type") for body in exceptions), "")


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
