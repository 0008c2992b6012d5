"""Trace checks: asked once a trial, whatever the agent said."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec, ToolRef
from holdfast.model.task import Task
from holdfast.model.trace import EVENTS_KEPT, TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict

TRIAL = Trial("abcdefabcdef", "contract", Scenario("s"), Task(("q",)))
CALL = TraceEvent(0.1, "tool_call", "look", "tool", 1)


def judged(
    check: str, settings: dict[str, Any], *trace: TraceEvent, turns: tuple[Turn, ...] = (Turn("q", "a"),), **more: Any
) -> Verdict:
    negate = more.pop("negate", False)
    rule = Invariant("r", check, settings, negate=negate)
    spec = Spec("c.yaml", AgentSpec(), invariants=(rule,))
    return Judge(spec).judge(rule, TRIAL, Observation(TRIAL.id, turns, trace=trace, **more))


def test_a_trace_check_is_asked_also_without_a_text_or_a_turn() -> None:
    silent = (Turn("q", None, ending="crashed"),)
    assert judged("tool_called", {"tool": "look"}, CALL, turns=silent).outcome == "pass"
    assert judged("tool_called", {"tool": "look"}, CALL, turns=()).outcome == "pass"
    assert judged("tool_not_called", {"tool": "look"}, CALL, turns=silent).outcome == "fail"


def test_a_trace_check_is_asked_once_for_several_turns() -> None:
    turns = (Turn("a", "1"), Turn("b", None, ending="timeout"))
    found = judged("max_calls", {"max": 1, "plane": "tool"}, CALL, turns=turns)
    assert (found.outcome, found.turn) == ("pass", 1)


def test_without_any_call_positive_checks_fail_and_negative_ones_are_unproven() -> None:
    assert judged("tool_called", {"tool": "look"}).outcome == "fail"
    assert judged("tool_not_called", {"tool": "look"}).outcome == "unproven"
    assert judged("tool_called", {"tool": "look"}, negate=True).outcome == "unproven"
    assert judged("tool_not_called", {"tool": "look"}, negate=True).outcome == "fail"
    assert judged("max_calls", {"max": 0}).code == "no-call"


ONLY_AFTER = {"tool": "pay", "requires": "look"}
SILENT = Turn("q", None, ending="crashed")


@pytest.mark.parametrize(
    ("check", "settings", "turns", "calls", "outcome"),
    [
        ("only_after", ONLY_AFTER, (Turn("q", "no"),), {}, "pass"),
        ("tool_not_called", {"tool": "pay"}, (Turn("q", "no"), Turn("r", "no")), {}, "pass"),
        ("tool_not_called", {"tool": "pay*"}, (Turn("q", "no"),), {}, "unproven"),  # a tool that nobody declared
        ("only_after", {"tool": "pay", "requires": "search"}, (Turn("q", "no"),), {}, "unproven"),
        ("max_calls", {"max": 0}, (Turn("q", "no"),), {}, "unproven"),  # other calls may be hidden
        ("only_after", ONLY_AFTER, (Turn("q", "no"),), {"tool look": 1}, "unproven"),  # called, and not traced
        ("only_after", ONLY_AFTER, (Turn("q", "no"), SILENT), {}, "unproven"),
        ("only_after", ONLY_AFTER, (Turn("q", " "),), {}, "unproven"),
        ("only_after", ONLY_AFTER, (), {}, "unproven"),
    ],
)
def test_an_answer_without_a_call_of_declared_tools_is_something_to_judge(
    check: str, settings: dict[str, Any], turns: tuple[Turn, ...], calls: dict[str, int], outcome: str
) -> None:
    rule = Invariant("r", check, settings)
    tools = (ToolRef("shop:look"), ToolRef("shop:send", "pay"))
    spec = Spec("c.yaml", AgentSpec(tools=tools), invariants=(rule,))
    assert Judge(spec).judge(rule, TRIAL, Observation(TRIAL.id, turns, calls=calls)).outcome == outcome


def test_negate_swaps_pass_and_fail() -> None:
    assert judged("tool_called", {"tool": "look"}, CALL, negate=True).outcome == "fail"
    assert judged("tool_called", {"tool": "pay"}, CALL, negate=True).outcome == "pass"


def test_our_own_failure_turns_fails_into_errors_and_passes_stand() -> None:
    assert judged("tool_called", {"tool": "pay"}, CALL, error="upstream is down").outcome == "error"
    assert judged("tool_called", {"tool": "look"}, CALL, error="upstream is down").outcome == "pass"
    assert judged("tool_called", {"tool": "look"}, CALL, turns=(), error="no start").outcome == "error"


def test_what_cannot_be_told_is_an_error_verdict_that_says_why() -> None:
    from holdfast.model.trace import Cost

    asked = TraceEvent(0.1, "llm_call", "odd-1", "llm", 1, cost=Cost("odd-1", 10, 5))
    found = judged("max_cost", {"max_usd": 1.0}, asked)
    assert found.outcome == "error"
    assert "odd-1" in found.reason


def test_a_trace_that_was_cut_proves_no_absence() -> None:
    many = (CALL,) * EVENTS_KEPT
    assert judged("tool_not_called", {"tool": "pay"}, *many).outcome == "unproven"
    assert judged("tool_called", {"tool": "pay"}, *many).outcome == "unproven"
    assert judged("tool_called", {"tool": "look"}, *many).outcome == "pass"
    assert judged("tool_not_called", {"tool": "look"}, *many).outcome == "fail"


# Rules about calls never pass on traffic that nobody could read.


PASSED_BY = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, status=200)
REFUSED = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, error_type="certificate_refused")
NEVER_THERE = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, status=502, error_type="upstream")
STARTED = AgentSpec(type="command", command="agent")
INLINE = AgentSpec(type="python", isolation="inline")
URL = "https://example.com/transfer"


def judged_launched(check: str, settings: dict[str, Any], *trace: TraceEvent, agent: AgentSpec = STARTED) -> Verdict:
    rule = Invariant("r", check, settings)
    seen = Observation(TRIAL.id, (Turn("q", "a"),), trace=(CALL, *trace))
    return Judge(Spec("c.yaml", agent, invariants=(rule,))).judge(rule, TRIAL, seen)


RULES: list[tuple[str, dict[str, Any]]] = [
    ("tool_not_called", {"tool": URL}),
    ("tool_not_called", {"tool": "POST https://example.com/*"}),
    ("max_calls", {"max": 5, "tool": URL}),
    ("max_calls", {"max": 5, "plane": "http"}),
    ("max_calls", {"max": 5}),
    ("side_effect_once", {}),
    ("side_effect_once", {"tool": "https://*.com/*"}),
    ("retries_within", {"max": 1, "tool": URL}),
]


@pytest.mark.parametrize(("check", "settings"), RULES)
@pytest.mark.parametrize("unread", [PASSED_BY, REFUSED])
def test_a_connection_that_could_not_be_read_leaves_a_negative_rule_unproven(
    check: str, settings: dict[str, Any], unread: TraceEvent
) -> None:
    found = judged_launched(check, settings, unread)
    assert found.outcome == "unproven"
    assert found.code == "calls-hidden"
    assert judged_launched(check, settings, NEVER_THERE).outcome == "pass"


def test_a_connection_elsewhere_or_a_rule_about_tools_is_not_in_doubt() -> None:
    assert judged_launched("tool_not_called", {"tool": "https://other.org/*"}, PASSED_BY).outcome == "pass"
    assert judged_launched("tool_not_called", {"tool": "transfer"}, PASSED_BY).outcome == "pass"
    assert judged_launched("max_calls", {"max": 5, "plane": "tool"}, PASSED_BY).outcome == "pass"


def test_what_was_seen_for_certain_stays_a_fail_and_a_positive_rule_is_not_failed_blindly() -> None:
    sent = TraceEvent(0.3, "http_call", f"POST {URL}", "http", 1, status=200, write=True)
    assert judged_launched("tool_not_called", {"tool": URL}, PASSED_BY, sent).outcome == "fail"
    assert judged_launched("tool_called", {"tool": URL}, REFUSED).outcome == "unproven"
    assert judged_launched("tool_called", {"tool": URL}).outcome == "fail"


@pytest.mark.parametrize(("check", "settings"), RULES)
@pytest.mark.parametrize("agent", [INLINE, AgentSpec(type="http", endpoint="http://agent")])
def test_where_nobody_sees_the_agents_http_a_rule_that_reads_it_never_passes(
    check: str, settings: dict[str, Any], agent: AgentSpec
) -> None:
    found = judged_launched(check, settings, agent=agent)
    assert found.outcome == "unproven"
    assert "HTTP" in found.reason


def test_a_url_too_long_to_be_kept_whole_is_not_taken_for_another() -> None:
    from holdfast.planes.describe import shorten_target

    long = shorten_target("https://example.com/" + "a" * 900 + "/transfer/" + "b" * 900)
    event = TraceEvent(0.2, "http_call", f"GET {long}", "http", 1, status=200)
    assert judged_launched("tool_not_called", {"tool": "https://example.com/*/transfer/*"}, event).outcome == "unproven"
    assert judged_launched("tool_not_called", {"tool": "https://other.org/*"}, event).outcome == "pass"
