"""A trial as a session: each call once, with what its tool gave, and the faults that act on it again."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace
from replay_kit import answered, told

from holdfast.model.observation import FaultMet, ForbiddenResult, Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Injection, Position, Scenario, Schedule
from holdfast.model.task import DialogueMessage, RecordedFiring, RequestChange, SimulatedUser, Task, Variation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.planes.injection.active_injection import compute_trial_seed
from holdfast.planes.recorded_value import write_lost, write_reply
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.trial_session import TrialSession, build_identities, build_session, list_failures

HELLO = Task(("hello",))

DOWN = Scenario("down")


def event(tool: str, ts: float, **more: Any) -> TraceEvent:
    return TraceEvent(ts, **{"event_type": "tool_call", "tool": tool, "plane": "tool", "duration_ms": 10.0, **more})


def web(url: str, ts: float, **more: Any) -> TraceEvent:
    return event(url, ts, event_type="http_call", plane="http", **more)


def traced(
    *events: TraceEvent, task: Task = HELLO, verdicts: Any = (), scenario: Scenario = DOWN, **seen: Any
) -> TracedTrial:
    trial = Trial("abcdefabcdef", "contract", scenario, task, params={"item": "kettle"})
    return TracedTrial(trial, Observation(trial.id, trace=events, at=1_794_225_600.0, **seen), tuple(verdicts))


def met_on(tool: str, reply: str) -> FaultMet:
    return FaultMet(0, "tool", tool, "stale", 1, reply=reply)


def made(one: TracedTrial) -> TrialSession:
    found = build_session(one, run="0001", contract="../holdfast.yaml")
    assert isinstance(found, TrialSession)
    return found


def test_values_statuses_and_latencies_are_kept_in_order() -> None:
    one = traced(
        event("number", 1, output="7"),
        event("data", 2, output='{"a":[1]}'),
        event("text", 3, output="plain"),
        event("nothing", 4, output="null"),
        event("figures", 4.5, output="[12]", reply='"[12]"'),
        event("broke", 5, error_type="ValueError", raised="builtins:ValueError", reply=write_reply(ValueError("no"))),
        event("due", 5.5, output="2026-01-02", reply=write_reply(date(2026, 1, 2)), input='{"n": 1}'),
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
        ("broke", {"$python": "object", "class": "builtins:ValueError", "args": ["no"], "state": None}, 500),
        ("due", {"$python": "datetime:date", "value": "2026-01-02"}, 200),
        ("srv/gone", "", 0),
        ("srv/tool", "7", 200),
        ("https://x.test/a?b=[1]", "down", 503),
    ]
    assert {response.latency_ms for response in session.responses} == {10.0}
    assert [one.tool for one in session.responses if one.python] == ["broke", "due"]
    assert [one.arguments for one in session.responses if one.arguments] == ['{"n":1}', '{"body":"","method":"GET"}']


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
        ("search", {"a": 1}, 200),
        ("https://x.test/pay", {"paid": True}, 201),
    ]
    assert {response.latency_ms for response in session.responses} == {0.0}


def test_a_call_that_a_fault_stopped_has_what_another_trial_was_given_for_it_at_the_end() -> None:
    stopped = event("search", 1, input='{"q":1}', fault="error", unsent=True)
    known = {stopped.identity: answered("search", [1]), "unasked:{}": answered("unasked", 2)}
    found = build_session(traced(stopped, event("search", 2, output="7")), run="0001", known=known)
    assert isinstance(found, TrialSession)
    assert told(found.session.responses) == [("search", 7, 200), ("search", [1], 200)]


def test_the_weather_and_the_seed_of_the_trial_are_kept() -> None:
    faults = (Injection("tool", "search", "error", {"error_code": 503}, raises="shop:Down"),)
    one = traced(scenario=Scenario("down", faults, "storm", position=Position(3)))
    found = build_session(one, run="0001")
    assert isinstance(found, TrialSession)
    assert found.session.scenario == Scenario("down", faults)
    assert found.session.seed == compute_trial_seed(one.trial)


def test_a_trial_that_no_session_can_hold_is_left_out() -> None:
    change = Variation("http_verb", "hello", request=RequestChange("http_verb", method="PUT"))
    assert isinstance(build_session(traced(task=Task(("hello",), variation=change)), run="0001"), LeftOutTrace)
    attacked = Scenario("attacked", (Injection("context", "input", "prompt_injection"),))
    spoken = Task(("hello",), user=SimulatedUser(script="user.py"))
    assert isinstance(build_session(traced(task=spoken, scenario=attacked), run="0001"), LeftOutTrace)
    assert isinstance(build_session(traced(task=spoken), run="0001"), TrialSession)


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


def test_why_it_failed_is_reported_rule_by_rule() -> None:
    verdicts = [
        Verdict("abcdefabcdef", "one", "fail", 0.0, "because"),
        Verdict("abcdefabcdef", "two", "pass", 1.0, "fine"),
        Verdict("abcdefabcdef", "three", "unproven", 0.0, "nothing there"),
    ]
    one = traced(verdicts=verdicts, forbidden=(ForbiddenResult("rm", True, ("rm -rf",)), ForbiddenResult("ok", False)))
    assert list_failures(one) == ("one: because", "forbidden rm: rm -rf")
    assert made(one).session.expected_failure == "; ".join(list_failures(one))
    assert list_failures(traced(verdicts=verdicts[1:])) == ()


def test_a_call_without_a_reply_is_noted_where_its_fault_passes() -> None:
    for schedule, count in ((Schedule(), 0), (Schedule(times=1), 1)):
        scenario = Scenario("s", (Injection("tool", "*", "error", {}, schedule),))
        stopped = traced(event("search", 1, fault="error", unsent=True), scenario=scenario)
        found = build_session(stopped, run="1")
        assert isinstance(found, TrialSession)
        assert len(found.notes) == count


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (write_lost("too-long"), "500,000"),
        (write_lost("no-json", "shop:Order"), "shop:Order"),
        (write_lost("not-text"), "not text"),
        (write_lost("packed"), "compression"),
        (write_lost("streamed"), "generator"),
    ],
)
def test_a_reply_that_was_not_kept_leaves_the_trial_out_and_says_why(reply: str, words: str) -> None:
    for one in (traced(event("find", 1, reply=reply)), traced(event("find", 1, n=1), ledger=(met_on("find", reply),))):
        found = build_session(one, run="0001")
        assert isinstance(found, LeftOutTrace)
        assert "find" in found.why
        assert words in found.why


def test_what_only_python_can_make_is_not_a_reply_on_a_wire() -> None:
    found = build_session(traced(web("GET https://x.test/", 1, reply=write_reply(b"\xff"))), run="0001")
    assert isinstance(found, LeftOutTrace)


def test_a_call_is_known_again_by_all_but_the_ids_and_times_in_it() -> None:
    def call(id: str, at: float, **more: Any) -> TraceEvent:
        return event("find", 1, input=f'{{"n":7,"id":"{id}","at":{at}}}', **more)

    first = call("0b9d1a52-9d0a-4a5e-8d2e-6f6f3c1f0a11", 1794225600.25)
    known = dict.fromkeys(build_identities(first), answered("find", {"paid": 40}))
    stopped = call("f3a1c0de-1111-4222-8333-444455556666", 1794225999.5, fault="error", unsent=True)
    found = build_session(traced(stopped), run="0001", known=known)
    assert isinstance(found, TrialSession)
    assert told(found.session.responses) == [("find", {"paid": 40}, 200)]
    other = replace(stopped, input=stopped.input.replace('"n":7', '"n":8'))
    assert told(made(traced(other)).session.responses) == []


def test_a_url_with_an_id_in_it_is_kept_as_a_glob() -> None:
    urls = ["https://x.test/orders/0b9d1a52-9d0a-4a5e-8d2e-6f6f3c1f0a11?q=1", "https://x.test/orders/7"]
    session = made(traced(*(web(f"GET {url}", n, status=200) for n, url in enumerate(urls)))).session
    assert [one.tool for one in session.responses] == ["https://x.test/orders/*?q=1", "https://x.test/orders/7"]


def test_the_calls_that_a_fault_with_a_probability_fired_on_are_kept() -> None:
    sure, drawn = Injection("tool", "a", "error"), Injection("tool", "b", "error", {}, Schedule(probability=0.5))
    ledger = (FaultMet(0, "tool", "a", "error", 1), FaultMet(1, "tool", "b", "error", 3, nth=3))
    found = build_session(traced(ledger=ledger, scenario=Scenario("s", (sure, drawn))), run="1")
    assert isinstance(found, TrialSession)
    assert found.session.fired == (RecordedFiring(2, 3),)
    assert made(traced(ledger=ledger[:1])).session.fired is None


def test_an_answer_that_no_file_could_hold_leaves_the_trial_out() -> None:
    found = build_session(traced(event("deep", 1, output="[" * 99 + "]" * 99)), run="0001")
    assert isinstance(found, LeftOutTrace)
    assert "deep" in found.why
