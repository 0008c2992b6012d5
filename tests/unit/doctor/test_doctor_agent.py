"""The doctor's agent part: what one calm trial shows of the agent's calls and of the faults that wait there."""

import pytest

from holdfast.doctor.agent import describe_trial
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trace import Cost, TraceEvent
from holdfast.report.terminal.diagnosis import CallsSeen

LAUNCHED = AgentSpec(type="command", command="true")
PYTHON = AgentSpec(type="python", endpoint="agent:ask")


def model_call(ts=0.0, retry=0, tokens=(10, 5)):
    return TraceEvent(ts, "llm_call", "gpt-4o", "llm", retry=retry, cost=Cost("gpt-4o", *tokens))


def result(tool="search", phase="done"):
    return TraceEvent(0.0, "tool_call", tool, "tool_result", phase=phase)


def fetched(url, trouble=""):
    return TraceEvent(0.0, "http_call", f"GET {url}", "http", error_type=trouble)


def seen_by(agent, *trace, faults=(), **more):
    spec = Spec("my spec.yaml", agent, scenarios=(Scenario("calm"), Scenario("storm", tuple(faults))))
    turns = (Turn("hi", "hello", 12.0),)
    return describe_trial(spec, ModelOptions(), "hi", Observation("t", **{"turns": turns, "trace": trace, **more}))


def by_route(asked):
    assert all(one.fix for one in asked.findings if one.outcome in ("not", "unproven"))
    return {one.route: one for one in asked.findings}


def test_calls_are_counted_per_plane_and_target_retries_and_tokens_apart():
    asked = seen_by(
        LAUNCHED, model_call(), model_call(retry=1), model_call(), result(), fetched("https://a.example/x?key=1")
    )
    assert asked.calls == (
        CallsSeen("llm", "gpt-4o", 2, 1, 45),
        CallsSeen("tool_result", "search", 1),
        CallsSeen("http", "https://a.example/x", 1),
    )
    found = by_route(asked)
    assert found["llm gpt-4o"].detail == "2 calls, 1 retry, 45 tokens"
    assert found["tool_result search"].detail == "1 call"
    assert "key=1" not in str(asked)


def test_a_plane_without_calls_says_so_and_one_that_is_not_watched_does_not():
    assert by_route(seen_by(LAUNCHED, model_call()))["http"].code == "calls-none"
    assert "http" not in by_route(seen_by(PYTHON))
    running = by_route(seen_by(AgentSpec(endpoint="http://127.0.0.1:1/")))
    assert running["calls"].code == "calls-unseen"


def test_many_targets_are_cut_short():
    asked = seen_by(LAUNCHED, *[fetched(f"https://a.example/{n}") for n in range(30)])
    assert by_route(asked)["http"].detail == "and 10 more targets"
    assert len(asked.calls) == 30


@pytest.mark.parametrize(
    ("fault", "route", "outcome"),
    [
        (Injection("llm", "*", "empty"), "storm waits for the model", "ok"),
        (Injection("tool", "sea*", "error"), "storm waits for sea*", "ok"),
        (Injection("tool", "mail", "error"), "storm waits for mail", "unproven"),
        (Injection("tool", "asked_for", "error"), "storm waits for asked_for", "unproven"),
        (Injection("context", "*", "indirect_injection"), "storm waits for any tool", "ok"),
        (Injection("http", "a.example/x", "down"), "storm waits for a.example/x", "ok"),
        (Injection("http", "b.example", "down"), "storm waits for b.example", "unproven"),
        (Injection("tool", "*", "error", match_url="https://a.example/*"), "storm waits for https://a.example/*", "ok"),
        (Injection("mcp", "*", "hang"), "storm waits for any tool", "unproven"),
    ],
)
def test_a_scenario_says_whether_its_target_was_called(fault, route, outcome):
    trace = (model_call(), result(), result("asked_for", "declared"), fetched("https://a.example/x"))
    found = by_route(seen_by(LAUNCHED, *trace, faults=[fault]))[route]
    assert (found.outcome, found.code) == (outcome, "target-called" if outcome == "ok" else "target-not-called")
    assert not found.broken


@pytest.mark.parametrize(
    ("schedule", "outcome"),
    [(Schedule(on_call=2), "ok"), (Schedule(on_call=3), "unproven"), (Schedule(after_calls=1), "ok"),
     (Schedule(after_calls=2), "unproven"), (Schedule(every=2), "ok"), (Schedule(every=3), "unproven")],
)  # fmt: skip
def test_a_fault_that_fires_later_than_the_last_call_may_be_unproven(schedule, outcome):
    fault = Injection("llm", "*", "empty", schedule=schedule)
    found = by_route(seen_by(LAUNCHED, model_call(), model_call(), faults=[fault]))["storm waits for the model"]
    assert found.outcome == outcome
    assert found.code == ("target-called" if outcome == "ok" else "target-called-too-rarely")


def test_a_result_in_the_traffic_of_a_python_agent_is_not_where_its_faults_act():
    call = TraceEvent(0.0, "tool_call", "search", "tool")
    for event, outcome in ((result(), "unproven"), (call, "ok")):
        found = by_route(seen_by(PYTHON, event, faults=[Injection("tool", "search", "error")]))
        assert {one.outcome for route, one in found.items() if route.startswith("storm ")} == {outcome}


def test_faults_on_listings_are_seen_by_any_call_of_a_listed_tool():
    call = TraceEvent(0.0, "mcp_call", "read", "mcp")
    found = by_route(seen_by(LAUNCHED, call, faults=[Injection("mcp", "read", "tool_poisoning")]))
    assert {one.outcome for route, one in found.items() if route.startswith("storm ")} == {"ok"}


def test_attacks_on_the_prompt_wait_for_no_call():
    asked = seen_by(LAUNCHED, faults=[Injection("context", "input", "memory_poisoning")])
    assert not [one for one in asked.findings if "waits" in one.route]


def test_a_client_that_rejects_the_certificate_is_reported():
    refused = fetched("https://a.example", "certificate_refused")
    asked = seen_by(LAUNCHED, refused, faults=[Injection("http", "a.example", "down")])
    found = by_route(asked)["tls to https://a.example"]
    assert (found.outcome, found.code, found.exit_code) == ("not", "certificate-refused", 3)
    assert "SSL_CERT_FILE" in found.fix
    assert asked.calls == ()


@pytest.mark.parametrize(
    ("more", "ending", "code"),
    [
        ({"error": "no model answers for gpt-4o"}, "error", "harness-error"),
        ({"turns": (Turn("hi", None, 3.0, "crashed", "exit code 1"),)}, "crashed", "not-answered"),
        ({"turns": ()}, "no_answer", "not-answered"),
    ],
)
def test_an_agent_that_does_not_answer_in_calm_is_broken(more, ending, code):
    asked = seen_by(LAUNCHED, **more)
    found = by_route(asked)["answer"]
    assert (asked.ending, found.outcome, found.code, found.exit_code) == (ending, "not", code, 3)
    assert "holdfast verify -c 'my spec.yaml'" in found.fix


def test_an_empty_answer_proves_nothing():
    found = by_route(seen_by(LAUNCHED, model_call(), turns=(Turn("hi", " ", 12.0),)))["answer"]
    assert (found.outcome, found.code, found.broken) == ("unproven", "answer-empty", False)


BEHIND = AgentSpec(endpoint="http://127.0.0.1:1/", gateway=True)


def test_an_agent_behind_a_gateway_that_sends_nothing_through_it_is_broken():
    found = by_route(seen_by(BEHIND))["agent.gateway"]
    assert (found.outcome, found.code, found.exit_code) == ("not", "gateway-bypassed", 3)
    assert "holdfast gateway --print" in found.fix
    assert "agent.gateway" not in by_route(seen_by(BEHIND, model_call()))
    assert "agent.gateway" not in by_route(seen_by(LAUNCHED))
