"""LangSmith through its own client, against a server that speaks its API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from replay_kit import langsmith, langsmith_run, read_json, read_text, told, uuid

from error_code import has_code
from holdfast.errors import HarnessError, UserError
from holdfast.model.session import SessionSource
from holdfast.model.task import DialogueMessage
from holdfast.replay.foreign_trace import NO_INPUT
from holdfast.replay.langsmith import fetch_sessions

NOW = datetime(2026, 11, 12, tzinfo=UTC)
HISTORY = [
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "SystemMessage"],
        "kwargs": {"content": "Be brief."},
    },
    {"type": "human", "content": "Hello"},
    {"type": "ai", "content": "Hi"},
    {"type": "human", "content": "Refund order 7"},
]
TRACE = (
    langsmith_run(1, inputs={"messages": [HISTORY]}, error="RuntimeError('refund failed')\n\nTraceback", name="agent"),
    langsmith_run(2, "llm", parent=1, trace=1, inputs={"messages": [HISTORY]}),
    langsmith_run(
        3, "tool", parent=1, trace=1, name="find_order", inputs={"input": "7"},
        outputs={"output": {"content": '{"order": 7}', "type": "tool", "tool_call_id": "c1", "status": "success"}},
    ),
    langsmith_run(4, "tool", parent=3, trace=1, name="inner", outputs={"output": "never"}),
    langsmith_run(5, "tool", parent=1, trace=1, name="refund", error="HTTPError: 503 Server Error for url"),
)  # fmt: skip


def test_a_run_becomes_a_session_with_what_its_tools_answered() -> None:
    with langsmith(*TRACE) as server:
        (found,) = fetch_sessions(SessionSource(run=uuid(1)), server.environ, NOW).sessions
    assert found.turns == ("Refund order 7",)
    assert found.context == (
        DialogueMessage("system", "Be brief."),
        DialogueMessage("user", "Hello"),
        DialogueMessage("assistant", "Hi"),
    )
    assert told(found.responses) == [
        ("find_order", {"order": 7}, 200),
        ("refund", "HTTPError: 503 Server Error for url", 503),
    ]
    assert [one.latency_ms for one in found.responses] == [250.0, 250.0]
    assert found.expected_failure == "RuntimeError('refund failed')"
    assert (found.id, found.name, found.captured_at) == (uuid(1), "agent", "2026-11-10T12:00:01+00:00")


def test_a_project_is_asked_for_by_status_time_and_latency_page_by_page() -> None:
    roots = [langsmith_run(n, inputs={"input": f"question {n}"}, error="broke") for n in range(1, 6)]
    quick = {**langsmith_run(6, inputs={"input": "quick"}, error="broke"), "end_time": "2026-11-10T12:00:06.010000"}
    well = langsmith_run(7, inputs={"input": "well"})
    old = {**langsmith_run(8, inputs={"input": "old"}, error="broke"), "start_time": "2026-01-01T00:00:00.000000"}
    source = SessionSource("support", min_latency_ms=100)
    with langsmith(*roots, quick, well, old) as server:
        found = fetch_sessions(source, server.environ, NOW).sessions
    assert [one.turns for one in found] == [(f"question {n}",) for n in range(1, 6)]
    asked = [body for path, body in server.asked if path == "/runs/query" and body["is_root"]]
    assert [body.get("cursor") for body in asked] == [None, "2", "4"]
    assert {body["error"] for body in asked} == {True}
    assert {body["start_time"] for body in asked} == {"2026-11-05T00:00:00+00:00"}
    assert {body["filter"] for body in asked} == {"gte(latency, 0.1)"}


def test_a_warning_is_a_trace_that_ended_well_though_a_step_of_it_failed() -> None:
    shaky = langsmith_run(1, inputs={"input": "shaky"})
    step = langsmith_run(2, "tool", parent=1, trace=1, name="search", error="ConnectionError: refused")
    well = langsmith_run(3, inputs={"input": "well"})
    with langsmith(shaky, step, well) as server:
        (found,) = fetch_sessions(
            SessionSource("support", status="warning", date_range="all"), server.environ, NOW
        ).sessions
        every = fetch_sessions(SessionSource("support", status="all"), server.environ, NOW).sessions
    assert found.turns == ("shaky",)
    assert told(found.responses) == [("search", "ConnectionError: refused", 0)]
    assert [one.turns[0] for one in every] == ["shaky", "well"]


def test_no_more_traces_are_taken_than_asked_for() -> None:
    roots = [langsmith_run(n, inputs={"input": f"question {n}"}) for n in range(1, 6)]
    with langsmith(*roots) as server:
        found = fetch_sessions(SessionSource("support", status="all", limit=3), server.environ, NOW).sessions
    assert len(found) == 3


def test_a_trace_without_inputs_is_left_out_by_name() -> None:
    with langsmith(langsmith_run(1), langsmith_run(2, inputs={"input": "there"})) as server:
        found = fetch_sessions(SessionSource("support", status="all"), server.environ, NOW)
    assert [one.turns for one in found.sessions] == [("there",)]
    assert [(one.name, one.why) for one in found.left_out] == [(uuid(1), NO_INPUT)]


def test_a_run_or_project_that_is_not_there_is_the_users() -> None:
    with langsmith() as server:
        with pytest.raises(UserError, check=has_code("langsmith-failed")):
            fetch_sessions(SessionSource(run=uuid(1)), server.environ, NOW)
        with pytest.raises(UserError, check=has_code("langsmith-failed")):
            fetch_sessions(SessionSource("other"), server.environ, NOW)
        with pytest.raises(UserError, check=has_code("langsmith-failed")):
            fetch_sessions(SessionSource(run="../../etc"), server.environ, NOW)


def test_a_wrong_key_and_a_missing_one_are_the_users() -> None:
    with langsmith() as server:
        with pytest.raises(UserError, check=has_code("langsmith-key")):
            fetch_sessions(SessionSource(run=uuid(1)), {**server.environ, "LANGSMITH_API_KEY": "another"}, NOW)
        with pytest.raises(UserError, check=has_code("langsmith-key")):
            fetch_sessions(SessionSource(run=uuid(1)), {}, NOW)


def test_a_server_that_cannot_be_reached_is_our_error_and_says_what_to_do() -> None:
    with langsmith() as server:
        environ = server.environ
    with pytest.raises(HarnessError, check=has_code("langsmith-failed")):
        fetch_sessions(SessionSource(run=uuid(1)), environ, NOW)


def test_an_export_is_read_like_the_api_flat_or_nested(tmp_path: Path) -> None:
    flat = read_json(tmp_path, list(TRACE)).sessions
    root, *rest = ({**run, "child_runs": []} for run in TRACE)
    rest[1]["child_runs"] = [rest.pop(2)]
    nested = read_json(tmp_path, {**root, "child_runs": rest}).sessions
    assert len(flat) == 1
    assert flat == nested
    assert [one.tool for one in flat[0].responses] == ["find_order", "refund"]


# Phoenix: OpenInference spans, flat and nested attributes, of its API and of its exports.


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


def test_where_no_run_is_of_a_tool_its_answer_is_in_what_the_model_was_given(tmp_path: Path) -> None:
    given = [
        {"role": "user", "content": "Refund order 7"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "find"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    model = langsmith_run(2, "llm", parent=1, trace=1, inputs={"messages": given})
    (found,) = read_json(tmp_path, [langsmith_run(1, inputs={"input": "Refund order 7"}), model]).sessions
    assert (found.turns, told(found.responses)) == (("Refund order 7",), [("find", "found", 200)])
