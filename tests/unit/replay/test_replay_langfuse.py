"""Langfuse: a downloaded trace, its API's pages, observations alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replay_kit import read_json, told

from holdfast.model.task import DialogueMessage


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
    assert [(one.name, one.why) for one in found.left_out] == [("bare", "it has no input: nothing says what was asked")]
