"""A trial as a session: each call once, with what the agent got."""

from __future__ import annotations

from typing import Any

from replay_kit import told

from holdfast.model.observation import FaultMet, ForbiddenResult, Observation
from holdfast.model.run import TracedTrial
from holdfast.model.task import DialogueMessage, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.trial_session import TrialSession, failures, trial_session

HELLO = Task(("hello",))


def event(tool: str, ts: float, **more: Any) -> TraceEvent:
    return TraceEvent(ts, **{"event_type": "tool_call", "tool": tool, "plane": "tool", "duration_ms": 10.0, **more})


def web(url: str, ts: float, **more: Any) -> TraceEvent:
    return event(url, ts, event_type="http_call", plane="http", **more)


def traced(*events: TraceEvent, task: Task = HELLO, verdicts: Any = (), **seen: Any) -> TracedTrial:
    trial = Trial("abcdefabcdef", "contract", "down", task, params={"item": "kettle"})
    return TracedTrial(trial, Observation(trial.id, trace=events, at=1_794_225_600.0, **seen), tuple(verdicts))


def made(one: TracedTrial) -> TrialSession:
    found = trial_session(one, run="0001", contract="../holdfast.yaml")
    assert isinstance(found, TrialSession)
    return found


def test_values_statuses_and_latencies_are_kept_in_order() -> None:
    one = traced(
        event("number", 1, output="7"),
        event("data", 2, output='{"a":[1]}'),
        event("text", 3, output="plain"),
        event("nothing", 4, output="null"),
        event("broke", 5, error_type="ValueError"),
        event("gone", 6, error_type="ConnectionError"),
        event("srv/tool", 7, event_type="mcp_call", plane="mcp", output="7"),
        web("GET https://x.test/a?b=[1]", 8, status=503, output="down", error_type="http_503"),
    )
    session = made(one).session
    assert told(session.responses) == [
        ("number", 7, 200),
        ("data", {"a": [1]}, 200),
        ("text", "plain", 200),
        ("nothing", None, 200),
        ("broke", "ValueError", 500),
        ("gone", "ConnectionError", 0),
        ("srv/tool", "7", 200),
        ("https://x.test/a?b=[1]", "down", 503),
    ]
    assert {response.latency_ms for response in session.responses} == {10.0}


def test_what_a_fault_gave_is_what_the_agent_got() -> None:
    met = FaultMet(0, "tool", "search", "error", 1, got="failed: 503 Service Unavailable")
    one = traced(event("search", 1, n=1, status=503, error_type="InjectedError", fault="error"), ledger=(met,))
    assert told(made(one).session.responses) == [("search", "503 Service Unavailable", 503)]


def test_a_call_is_kept_once_and_neither_models_nor_what_was_only_asked_for() -> None:
    one = traced(
        event("search", 1, output="1"),
        event("search", 1.5, plane="tool_result", output="1"),
        event("other", 2, plane="tool_result", phase="declared"),
        event("late", 3, phase="unfinished"),
        web("GET https://x.test/inside", 1.005, status=200),
        web("CONNECT https://x.test", 4, status=200),
        web("GET https://x.test/own", 5, status=200, output="body"),
        event("gpt", 6, event_type="llm_call", plane="llm", output="hi"),
    )
    assert told(made(one).session.responses) == [("search", 1, 200), ("https://x.test/own", "body", 200)]


def test_the_question_is_filled_in_and_the_turns_before_are_kept() -> None:
    task = Task(("a {{ params.item }}?", "sure?"), context=(DialogueMessage("assistant", "hi"),))
    session = made(traced(task=task)).session
    assert session.turns == ("a kettle?", "sure?")
    assert session.context == (DialogueMessage("assistant", "hi"),)
    assert (session.id, session.source, session.contract) == ("abcdefabcdef", "holdfast run 0001", "../holdfast.yaml")


def test_why_it_failed_is_told_rule_by_rule() -> None:
    verdicts = [
        Verdict("abcdefabcdef", "one", "fail", 0.0, "because"),
        Verdict("abcdefabcdef", "two", "pass", 1.0, "fine"),
        Verdict("abcdefabcdef", "three", "unproven", 0.0, "nothing there"),
    ]
    one = traced(verdicts=verdicts, forbidden=(ForbiddenResult("rm", True, ("rm -rf",)), ForbiddenResult("ok", False)))
    assert failures(one) == ("one: because", "forbidden rm: rm -rf")
    assert made(one).session.expected_failure == "one: because; forbidden rm: rm -rf"
    assert failures(traced(verdicts=verdicts[1:])) == ()


def test_what_cannot_be_kept_is_noted() -> None:
    long = "a" * 1998 + " … " + "b" * 1998
    one = traced(event("search", 1, output=long), event("gpt", 2, event_type="llm_call", plane="llm", fault="timeout"))
    cut, models = made(one).notes
    assert "of what search answered the run keeps 4,000 characters" in cut
    assert "faults of its model are not part of a session" in models


def test_an_answer_that_no_file_could_hold_leaves_the_trial_out() -> None:
    found = trial_session(traced(event("deep", 1, output="[" * 99 + "]" * 99)), run="0001")
    assert isinstance(found, LeftOutTrace)
    assert "what deep answered" in found.why
