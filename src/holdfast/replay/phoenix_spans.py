"""Converts Phoenix spans to sessions: OpenInference attributes, flat or nested, from its API or an export."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import at, decoded, items, lasted_ms, seconds, text
from holdfast.replay.foreign_messages import after_question, messages
from holdfast.replay.foreign_trace import ForeignTrace, Found, ToolUse, session_of, tools_in_messages

SOURCE = "phoenix"
_COLUMN = "attributes."
_NUMBERED = re.compile(r"llm\.input_messages\.(\d+)\.(.+)")


def matches(document: Any) -> bool:
    """Whether this is one or more OpenInference spans."""
    listed = _listed(document)
    return bool(listed) and (bool(_kind(listed[0])) or bool(text(listed[0], "context", "trace_id")))


def read(document: Any) -> Iterator[Found]:
    """A session for every trace among the spans."""
    traces: defaultdict[str, list[Any]] = defaultdict(list)
    for span in _listed(document):
        traces[_context(span, "trace_id")].append(span)
    for id, spans in traces.items():
        yield session_of(_trace(id, sorted(spans, key=lambda one: seconds(at(one, "start_time")) or 0.0)))


def _listed(document: Any) -> list[Any]:
    if isinstance(document, list):
        return [one for one in document if isinstance(one, dict)]
    return items(document, "data") or items(document, "spans") or ([document] if isinstance(document, dict) else [])


def _trace(id: str, spans: list[Any]) -> ForeignTrace:
    known = {_context(span, "span_id") for span in spans}
    roots = [span for span in spans if text(span, "parent_id") not in known] or spans[:1]
    models = [span for span in spans if _kind(span) == "LLM"]
    tools = [_tool(span) for span in spans if _kind(span) == "TOOL"]
    failed = next((span for span in roots if _failure(span)), None)
    return ForeignTrace(
        id=id,
        asked=tuple(value for span in (*roots, *models) for value in _inputs(span)),
        tools=tuple(tools) or _tools_in_prompts(models),
        name=text(roots[0], "name"),
        source=SOURCE,
        began=seconds(at(roots[0], "start_time")),
        failure=_failure(failed) if failed is not None else "",
    )


def _inputs(span: Any) -> Iterator[Any]:
    if _kind(span) == "LLM":
        yield _input_messages(span)
    yield _attribute(span, "input.value")
    yield _input_messages(span)


def _tools_in_prompts(models: list[Any]) -> tuple[ToolUse, ...]:
    """Tools' answers without a span of their own, from the messages of the last model call."""
    for span in reversed(models):
        tools = tools_in_messages(after_question(messages(_input_messages(span))))
        if tools:
            return tools
    return ()


def _tool(span: Any) -> ToolUse:
    return ToolUse(
        tool=text({"": _attribute(span, "tool.name")}, "") or text(span, "name"),
        output=decoded(_attribute(span, "output.value")),
        error=_failure(span),
        latency_ms=lasted_ms(at(span, "start_time"), at(span, "end_time")),
        began=seconds(at(span, "start_time")) or 0.0,
    )


def _failure(span: Any) -> str:
    if text(span, "status_code").upper() not in ("ERROR", "2"):
        return ""
    message = next((text(one, "attributes", "exception.message") for one in items(span, "events")), "")
    return text(span, "status_message") or message or "error"


def _kind(span: Any) -> str:
    kind = _attribute(span, "openinference.span.kind")
    return (kind if isinstance(kind, str) else text(span, "span_kind")).upper()


def _context(span: Any, key: str) -> str:
    return text(span, "context", key) or text(span, f"context.{key}") or text(span, key)


def _attribute(span: Any, name: str) -> Any:
    """An attribute by its dotted name: flat, nested, or a column of a table."""
    if isinstance(span, dict) and f"{_COLUMN}{name}" in span:
        return span[f"{_COLUMN}{name}"]
    held = decoded(at(span, "attributes"))
    if isinstance(held, dict) and name in held:
        return held[name]
    return at(held, *name.split("."))


def _input_messages(span: Any) -> list[Any]:
    """Messages as a list, or from attributes such as `llm.input_messages.0.message.role`."""
    messages_sent = decoded(_attribute(span, "llm.input_messages"))
    if isinstance(messages_sent, list):
        return messages_sent
    by_index: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    flat = at(span, "attributes")
    for key, value in flat.items() if isinstance(flat, dict) else ():
        part = _NUMBERED.fullmatch(key)
        if part is not None:
            by_index[int(part[1])][part[2].removeprefix("message.")] = value
    return [_whole(by_index[n]) for n in sorted(by_index)]


def _whole(flat: dict[str, Any]) -> dict[str, Any]:
    """A message from flat keys: its text may be in parts, its tool calls are numbered."""
    parts = [value for key, value in sorted(flat.items()) if key.startswith("contents.") and key.endswith(".text")]
    made = {key: value for key, value in flat.items() if "." not in key}
    calls: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in flat.items():
        part = re.fullmatch(r"tool_calls\.(\d+)\.tool_call\.(id|function\.name)", key)
        if part is not None:
            calls[part[1]]["id" if part[2] == "id" else "name"] = value
    if parts:
        made["content"] = "\n".join(map(str, parts))
    if calls:
        made["tool_calls"] = [calls[n] for n in sorted(calls)]
    return {"content": "", **made}
