"""A trial as a session: each call once, with what its tool gave, and the faults that act on it again."""

from __future__ import annotations

from typing import Any

from replay_kit import answered, told

from holdfast.model.observation import FaultMet, ForbiddenResult, Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Injection, Position, Scenario
from holdfast.model.task import DialogueMessage, RequestChange, SimulatedUser, Task, Variation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.planes.luck import trial_seed
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
        event("figures", 4.5, output="[12]", is_text=True),
        event("broke", 5, error_type="ValueError", raised="builtins:ValueError", output="ValueError: no such item"),
        event("local", 5.5, error_type="Odd", raised="shop:ask.<locals>.Odd", output="Odd"),
        event("srv/gone", 6, event_type="mcp_call", plane="mcp", error_type="lost"),
        event("srv/tool", 7, event_type="mcp_call", plane="mcp", output="7"),
        web("GET https://x.test/a?b=[1]", 8, status=503, output="down", error_type="http_503"),
    )
    session = made(one).session
    assert told(session.responses) == [
        ("number", 7, 200),
        ("data", {"a": [1]}, 200),
        ("text", "plain", 200),
        ("nothing", None, 200),
        ("figures", "[12]", 200),
        ("broke", "no such item", 500),
        ("local", "", 500),
        ("srv/gone", "", 0),
        ("srv/tool", "7", 200),
        ("https://x.test/a?b=[1]", "down", 503),
    ]
    assert {response.latency_ms for response in session.responses} == {10.0}
    assert [one.raises for one in session.responses if one.raises] == ["builtins:ValueError"]


def test_what_is_kept_is_what_the_tool_gave_before_the_faults() -> None:
    ledger = (
        FaultMet(0, "tool", "search", "stale", 1, reply='"changed"'),
        FaultMet(1, "context", "search", "indirect_injection", 1, "erased", reply='{"a":1}'),
        FaultMet(0, "http", "https://x.test/pay", "lost_reply", 1, reply='{"paid":true}'),
        FaultMet(2, "tool", "other", "lost_reply", 1, reply='"of another"'),
    )
    one = traced(
        event("search", 1, n=1, output="poisoned", fault="stale+indirect_injection"),
        event("search", 2, n=2, status=503, error_type="InjectedError", fault="error", unsent=True),
        event("search", 3, n=3, output='"late"', fault="slow"),
        web("POST https://x.test/pay", 4, n=1, status=201, error_type="connection_lost", fault="lost_reply"),
        web("POST https://x.test/pay", 5, n=2, phase="unfinished"),
        ledger=ledger,
    )
    session = made(one).session
    assert told(session.responses) == [
        ("search", {"a": 1}, 200),
        ("search", "late", 200),
        ("https://x.test/pay", {"paid": True}, 201),
    ]
    assert {response.latency_ms for response in session.responses} == {0.0}


def test_a_call_that_a_fault_stopped_has_what_another_trial_was_given_for_it_at_the_end() -> None:
    stopped = event("search", 1, input='{"q":1}', fault="error", unsent=True)
    known = {stopped.identity: answered("search", [1]), "unasked:{}": answered("unasked", 2)}
    found = trial_session(traced(stopped, event("search", 2, output="7")), run="0001", known=known)
    assert isinstance(found, TrialSession)
    assert told(found.session.responses) == [("search", 7, 200), ("search", [1], 200)]


def test_the_weather_and_the_seed_of_the_trial_are_kept() -> None:
    faults = (Injection("tool", "search", "error", {"error_code": 503}, raises="shop:Down"),)
    one = traced()
    found = trial_session(one, run="0001", scenario=Scenario("down", faults, "storm", position=Position(3)))
    assert isinstance(found, TrialSession)
    assert found.session.scenario == Scenario("down", faults)
    assert found.session.seed == trial_seed(one.trial)


def test_a_trial_that_no_session_can_hold_is_left_out() -> None:
    change = Variation("http_verb", "hello", request=RequestChange("http_verb", method="PUT"))
    assert isinstance(trial_session(traced(task=Task(("hello",), variation=change)), run="0001"), LeftOutTrace)
    attacked = Scenario("attacked", (Injection("context", "input", "prompt_injection"),))
    spoken = Task(("hello",), user=SimulatedUser(script="user.py"))
    assert isinstance(trial_session(traced(task=spoken), run="0001", scenario=attacked), LeftOutTrace)
    assert isinstance(trial_session(traced(task=spoken), run="0001"), TrialSession)


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
    (cut,) = made(traced(event("search", 1, output=long))).notes
    assert "search" in cut


def test_an_answer_that_no_file_could_hold_leaves_the_trial_out() -> None:
    found = trial_session(traced(event("deep", 1, output="[" * 99 + "]" * 99)), run="0001")
    assert isinstance(found, LeftOutTrace)
    assert "what deep answered" in found.why
