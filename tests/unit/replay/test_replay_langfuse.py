"""Langfuse: a downloaded trace, its API's pages, observations alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_kit import read_json, told

from holdfast.model.session import RecordedSession
from holdfast.model.task import DialogueMessage
from holdfast.replay.foreign_trace import NO_INPUT


def observation(n: int, kind: str, name: str, **more: Any) -> Any:
    return {
        "id": f"obs-{n}",
        "traceId": "tr/../1",
        "type": kind,
        "name": name,
        "startTime": f"2026-11-10T12:00:{n:02d}.000Z",
        "endTime": f"2026-11-10T12:00:{n:02d}.120Z",
        "parentObservationId": None if n == 1 else "obs-1",
        "input": None,
        "output": None,
        "level": "DEFAULT",
        "statusMessage": None,
        **more,
    }


OBSERVATIONS = [
    observation(3, "TOOL", "refund", level="ERROR", statusMessage="connection refused", input={"order": 7}),
    observation(1, "AGENT", "desk", input={"messages": [{"role": "user", "content": "Refund order 7"}]}),
    observation(2, "TOOL", "find", output={"order": 7}),
]
TRACE = {
    "id": "tr/../1",
    "timestamp": "2026-11-10T12:00:00.000Z",
    "name": "support",
    "input": {"history": [{"role": "assistant", "content": "How can I help?"}], "question": "Refund order 7"},
    "output": "I could not.",
    "htmlPath": "/project/p/traces/tr",
    "scores": [],
    "observations": OBSERVATIONS,
}


def test_a_trace_with_its_observations_becomes_a_session(tmp_path: Path) -> None:
    (found,) = read_json(tmp_path, TRACE).sessions
    assert (found.id, found.name, found.source) == ("tr/../1", "support", "langfuse")
    assert found.turns == ("Refund order 7",)
    assert found.context == (DialogueMessage("assistant", "How can I help?"),)
    assert told(found.responses) == [("find", {"order": 7}, 200), ("refund", "connection refused", 0)]
    assert [one.latency_ms for one in found.responses] == [120.0, 120.0]
    assert found.expected_failure == "connection refused"
    assert found.captured_at == "2026-11-10T12:00:00+00:00"


def test_the_download_may_keep_trace_and_observations_apart(tmp_path: Path) -> None:
    trace = {key: value for key, value in TRACE.items() if key != "observations"}
    (found,) = read_json(tmp_path, {"trace": trace, "observations": OBSERVATIONS, "scores": []}).sessions
    assert [one.tool for one in found.responses] == ["find", "refund"]


def test_a_page_of_observations_is_sorted_into_traces(tmp_path: Path) -> None:
    other = observation(4, "GENERATION", "chat", traceId="tr-2", parentObservationId=None, input="Another question")
    page = {"data": [*OBSERVATIONS, other], "meta": {"cursor": None}}
    first, second = read_json(tmp_path, page).sessions
    assert (first.id, first.turns, len(first.responses)) == ("tr/../1", ("Refund order 7",), 2)
    assert (second.id, second.turns, second.responses) == ("tr-2", ("Another question",), ())


def test_a_trace_without_an_input_is_left_out(tmp_path: Path) -> None:
    bare = {**TRACE, "id": "bare", "input": None, "observations": []}
    found = read_json(tmp_path, [TRACE, bare])
    assert len(found.sessions) == 1
    assert [(one.name, one.why) for one in found.left_out] == [("bare", NO_INPUT)]


def packed(value: Any, times: int = 1) -> Any:
    """JSON written into a text, again and again."""
    for _ in range(times):
        value = json.dumps(value)
    return value


def one_trace(tmp_path: Path, input: Any, *inside: Any) -> RecordedSession:
    (found,) = read_json(tmp_path, {**TRACE, "input": input, "observations": list(inside)}).sessions
    return found


ASKED: list[tuple[Any, tuple[str, ...]]] = [
    ("Refund order 7", ("Refund order 7",)),
    ({"prompt": "Refund order 7", "system": "Be kind."}, ("Refund order 7",)),
    ({"messages": [{"role": "user", "content": "Refund order 7"}]}, ("Refund order 7",)),
    ([{"role": "user", "parts": [{"type": "text", "content": "Refund order 7"}]}], ("Refund order 7",)),
    ({"model": "m", "contents": "Refund order 7"}, ("Refund order 7",)),
    ({"model": "m", "contents": [{"role": "user", "parts": [{"text": "Refund order 7"}]}]}, ("Refund order 7",)),
    ({"user_id": "u", "new_message": {"role": "user", "parts": [{"text": "Refund order 7"}]}}, ("Refund order 7",)),
    ({"args": ["Refund order 7"], "kwargs": {}}, ("Refund order 7",)),
    ({"args": [], "kwargs": {"question": "Refund order 7"}}, ("Refund order 7",)),
    ("developer: Be kind.\nuser: Refund order 7\nand 8", ("Refund order 7\nand 8",)),
    ("user: I am one", ("user: I am one",)),
    ('He said "no"', ('He said "no"',)),
]


@pytest.mark.parametrize(("input", "turns"), ASKED)
def test_json_inside_texts_is_unpacked_whatever_holds_the_question(
    tmp_path: Path, input: Any, turns: tuple[str, ...]
) -> None:
    for times in [0, 1, 2, 3]:
        assert one_trace(tmp_path, packed(input, times)).turns == turns, times


def attributes(**more: Any) -> dict[str, Any]:
    return {"metadata": {"attributes": {key.replace("__", "."): value for key, value in more.items()}}}


MESSAGE = {"type": "tool", "name": "find", "content": '{"order": 7}', "tool_call_id": "c1"}
MADE = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": MESSAGE}
TOOLS = [
    observation(2, "TOOL", "execute_tool find", output={"order": 7}, **attributes(gen_ai__tool__name="find")),
    observation(2, "SPAN", "tool.find", output={"order": 7}, **attributes(gen_ai__tool__name="find")),
    observation(2, "TOOL", "step", output={"order": 7}, **attributes(ai__toolCall__name="find")),
    observation(2, "SPAN", "find", output={"order": 7}, **attributes(gen_ai__operation__name="execute_tool")),
    observation(2, "SPAN", "x", output={"order": 7}, **attributes(tool__name="find", openinference__span__kind="TOOL")),
    observation(2, "SPAN", "find", output=MESSAGE),
    observation(2, "SPAN", "find", output=MADE),
    observation(2, "SPAN", "find", output={**MESSAGE, "content": {"order": 7}}),
    observation(2, "TOOL", "find", output={}, **attributes(gen_ai__tool__call__result='{"order": 7}')),
]


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_known_by_its_attributes_before_its_spans_name(tmp_path: Path, tool: Any, times: int) -> None:
    tool = {**tool, "output": packed(tool["output"], times), "metadata": packed(tool.get("metadata"), times)}
    others = [observation(3, "SPAN", "step", output="done"), observation(4, "GENERATION", "chat", output="fine")]
    assert told(one_trace(tmp_path, "Hi", tool, *others).responses) == [("find", {"order": 7}, 200)]


def test_several_steps_of_one_call_are_one_answer(tmp_path: Path) -> None:
    step = attributes(tool__name="find", tool__parameters='{"order": 7}')
    steps = [observation(n, "SPAN", f"update-{n}", output=[7] if n > 2 else None, **step) for n in (2, 3, 4)]
    assert told(one_trace(tmp_path, "Hi", *steps).responses) == [("find", [7], 200)]


def test_where_no_observation_is_of_a_tool_its_answer_is_in_what_the_model_was_given(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "find"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    ]
    chat = observation(2, "GENERATION", "chat", input=packed({"messages": said}))
    assert told(one_trace(tmp_path, "Hi", chat).responses) == [("find", "7", 200)]


def test_a_tool_inside_a_tool_is_part_of_the_same_call(tmp_path: Path) -> None:
    inner = observation(3, "TOOL", "search", output=[7], parentObservationId="obs-2")
    outer = observation(2, "TOOL", "find", output={"order": 7})
    assert told(one_trace(tmp_path, "Hi", outer, inner).responses) == [("find", {"order": 7}, 200)]
