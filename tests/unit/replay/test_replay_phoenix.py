"""Phoenix: OpenInference spans, flat and nested attributes, of its API and of its exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replay_kit import read_json, read_text, told

from holdfast.model.task import DialogueMessage

TOO_MANY = "HTTP 429 Too Many Requests"


def span(n: int, kind: str, name: str, parent: int | None = 1, **more: Any) -> Any:
    attributes = {"openinference.span.kind": kind, **more.pop("attributes", {})}
    return {
        "id": f"U3Bhbjo{n}",
        "name": name,
        "context": {"trace_id": "tr1", "span_id": f"s{n}"},
        "span_kind": kind,
        "parent_id": None if parent is None else f"s{parent}",
        "start_time": f"2026-11-10T12:00:{n:02d}+00:00",
        "end_time": f"2026-11-10T12:00:{n:02d}.500000+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": attributes,
        "events": [],
        **more,
    }


SPANS = [
    span(1, "AGENT", "desk", None, attributes={"input.value": "Refund order 7"}, status_code="ERROR",
         status_message="gave up"),
    span(2, "TOOL", "run tool", attributes={"tool.name": "find", "output.value": '{"order": 7}'}),
    span(3, "TOOL", "refund", status_code="ERROR", status_message=TOO_MANY),
]  # fmt: skip
FLAT_MESSAGES = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be kind.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.text": "Refund order 7",
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "find",
    "llm.input_messages.3.message.role": "tool",
    "llm.input_messages.3.message.tool_call_id": "c1",
    "llm.input_messages.3.message.content": "[7]",
}


def test_a_page_of_the_api_becomes_sessions(tmp_path: Path) -> None:
    (found,) = read_json(tmp_path, {"data": list(reversed(SPANS)), "next_cursor": None}).sessions
    assert (found.id, found.name, found.source, found.turns) == ("tr1", "desk", "phoenix", ("Refund order 7",))
    assert told(found.responses) == [("find", {"order": 7}, 200), ("refund", TOO_MANY, 429)]
    assert [one.latency_ms for one in found.responses] == [500.0, 500.0]
    assert found.expected_failure == "gave up"


def test_lines_of_spans_are_one_trace(tmp_path: Path) -> None:
    lines = "".join(json.dumps(one) + "\n" for one in SPANS)
    (found,) = read_text(tmp_path, lines, "spans.jsonl").sessions
    assert [one.tool for one in found.responses] == ["find", "refund"]


def test_messages_in_flat_attributes_tell_context_and_tools(tmp_path: Path) -> None:
    (found,) = read_json(tmp_path, [span(1, "LLM", "chat", None, attributes=FLAT_MESSAGES)]).sessions
    assert found.turns == ("Refund order 7",)
    assert found.context == (DialogueMessage("system", "Be kind."),)
    assert told(found.responses) == [("find", [7], 200)]


def test_attributes_may_be_nested_or_columns_of_a_table(tmp_path: Path) -> None:
    nested = {"openinference": {"span": {"kind": "AGENT"}}, "input": {"value": "Hello"}}
    row = {
        "context.trace_id": "tr2", "context.span_id": "s1", "parent_id": None, "name": "desk", "span_kind": "AGENT",
        "attributes.openinference.span.kind": "AGENT", "attributes.input.value": "Hello", "start_time": "2026-11-10",
    }  # fmt: skip
    whole = {"name": "desk", "context": {"trace_id": "tr1", "span_id": "s1"}, "attributes": nested}
    assert read_json(tmp_path, [whole]).sessions[0].turns == ("Hello",)
    assert read_json(tmp_path, [row]).sessions[0].turns == ("Hello",)
