"""OpenTelemetry GenAI traces in OTLP JSON: attributes and events, spans of tools and messages that tell of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replay_kit import read_json, read_text, told

from holdfast.model.task import DialogueMessage
from holdfast.replay.foreign_trace import NO_INPUT

TRACE = "5b8efff798038103d269b633813fc60c"


def attribute(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return {"key": key, "value": {"arrayValue": {"values": [attribute("", one)["value"] for one in value]}}}
    if isinstance(value, dict):
        return {"key": key, "value": {"kvlistValue": {"values": [attribute(k, v) for k, v in value.items()]}}}
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def span(n: int, name: str, parent: int = 0, *, error: str = "", events: Any = (), **known: Any) -> Any:
    """Starts at second n and takes 40 ms; `__` in a keyword stands for a dot."""
    made = {
        "traceId": TRACE,
        "spanId": f"{n:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(1_794_225_600_000_000_000 + n * 1_000_000_000),
        "endTimeUnixNano": str(1_794_225_600_040_000_000 + n * 1_000_000_000),
        "attributes": [attribute(key.replace("__", "."), value) for key, value in known.items()],
        "events": [{"name": at, "attributes": [attribute(k, v) for k, v in body.items()]} for at, body in events],
        "status": {"code": 2, "message": error} if error else {},
    }
    return {**made, **({"parentSpanId": f"{parent:016x}"} if parent else {})}


def request(*spans: Any) -> Any:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "lib"}, "spans": list(spans)}]}]}


def op(name: str) -> dict[str, str]:
    return {"gen_ai__operation__name": name}


MESSAGES = [
    {"role": "system", "parts": [{"type": "text", "content": "You refund."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Refund order 7"}]},
]


def test_the_newer_convention_has_messages_as_attributes_and_tools_as_spans(tmp_path: Path) -> None:
    spans = [
        span(1, "invoke_agent desk", **op("invoke_agent"), gen_ai__agent__name="desk", error="it gave up",
             gen_ai__input__messages=json.dumps(MESSAGES)),
        span(2, "chat gpt", 1, **op("chat"), gen_ai__input__messages=json.dumps(MESSAGES)),
        span(3, "execute_tool find", 1, **op("execute_tool"), gen_ai__tool__name="find",
             gen_ai__tool__call__result='{"order": 7}'),
        span(4, "tools/call find", 3, gen_ai__tool__name="find", gen_ai__tool__call__result="inner"),
        span(5, "execute_tool refund", 1, **op("execute_tool"), gen_ai__tool__name="refund", error__type="503",
             error="Service Unavailable"),
    ]  # fmt: skip
    (found,) = read_json(tmp_path, request(*reversed(spans))).sessions
    assert (found.id, found.name, found.source) == (TRACE, "desk", "opentelemetry")
    assert found.turns == ("Refund order 7",)
    assert found.context == (DialogueMessage("system", "You refund."),)
    assert told(found.responses) == [("find", {"order": 7}, 200), ("refund", "Service Unavailable", 503)]
    assert [one.latency_ms for one in found.responses] == [40.0, 40.0]
    assert found.expected_failure == "it gave up"
    assert found.captured_at.startswith("2026-11-0")


def test_messages_may_be_structured_values(tmp_path: Path) -> None:
    (found,) = read_json(tmp_path, request(span(1, "chat m", **op("chat"), gen_ai__input__messages=MESSAGES))).sessions
    assert found.turns == ("Refund order 7",)


def test_the_older_convention_has_the_prompt_as_an_event(tmp_path: Path) -> None:
    prompt = json.dumps([{"role": "user", "content": "Hello"}])
    events = [("gen_ai.content.prompt", {"gen_ai.prompt": prompt})]
    (found,) = read_json(tmp_path, request(span(1, "chat m", **op("chat"), events=events))).sessions
    assert found.turns == ("Hello",)


def test_messages_may_be_events_of_their_own(tmp_path: Path) -> None:
    events = [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Hello"}),
    ]
    (found,) = read_json(tmp_path, request(span(1, "chat m", **op("chat"), events=events))).sessions
    assert (found.context, found.turns) == ((DialogueMessage("system", "Be kind."),), ("Hello",))


def test_messages_may_be_numbered_attributes(tmp_path: Path) -> None:
    known = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hello"}
    (found,) = read_json(tmp_path, request(span(1, "chat m", **op("chat"), **known))).sessions
    assert found.turns == ("Hello",)


def test_without_spans_of_tools_the_messages_tell_what_they_answered(tmp_path: Path) -> None:
    after = [
        *MESSAGES,
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "find", "arguments": {}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"order": 7}}]},
    ]
    first = span(1, "chat m", **op("chat"), gen_ai__input__messages=json.dumps(MESSAGES))
    second = span(2, "chat m", **op("chat"), gen_ai__input__messages=json.dumps(after))
    (found,) = read_json(tmp_path, request(first, second)).sessions
    assert found.turns == ("Refund order 7",)
    assert told(found.responses) == [("find", {"order": 7}, 200)]


def test_a_tool_that_raised_tells_it_by_its_exception(tmp_path: Path) -> None:
    raised = [("exception", {"exception.type": "TimeoutError", "exception.message": "timed out"})]
    tool = span(2, "execute_tool find", 1, **op("execute_tool"), events=raised)
    tool["status"] = {"code": "STATUS_CODE_ERROR"}
    agent = span(1, "invoke_agent", **op("invoke_agent"), gen_ai__input__messages=json.dumps(MESSAGES))
    (found,) = read_json(tmp_path, request(agent, tool)).sessions
    assert told(found.responses) == [("find", "timed out", 0)]


def test_a_trace_may_be_spread_over_the_lines_of_a_file_and_a_damaged_one_is_left_out(tmp_path: Path) -> None:
    agent = span(1, "invoke_agent", **op("invoke_agent"), gen_ai__input__messages=json.dumps(MESSAGES))
    tool = span(2, "execute_tool find", 1, **op("execute_tool"), gen_ai__tool__call__result="found")
    lines = [json.dumps(request(agent)), '{"resourceSpans": [{"resou', json.dumps(request(tool))]
    found = read_text(tmp_path, "\n".join(lines) + "\n", "spans.jsonl")
    assert [told(one.responses) for one in found.sessions] == [[("find", "found", 200)]]
    assert [one.name for one in found.left_out] == ["spans.jsonl:2"]


def test_spans_that_are_each_others_parents_end(tmp_path: Path) -> None:
    one, other = span(1, "a", 2), span(2, "b", 1)
    found = read_json(tmp_path, request(one, other))
    assert [left.why for left in found.left_out] == [NO_INPUT]
