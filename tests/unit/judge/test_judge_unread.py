"""Rules about calls never pass on traffic that nobody could read."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict

TRIAL = Trial("abcdefabcdef", "contract", Scenario("s"), Task(("q",)))
CALL = TraceEvent(0.1, "tool_call", "look", "tool", 1)
PASSED_BY = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, status=200)
REFUSED = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, error_type="certificate_refused")
NEVER_THERE = TraceEvent(0.2, "http_call", "CONNECT https://example.com", "http", 1, status=502, error_type="upstream")
STARTED = AgentSpec(type="command", command="agent")
INLINE = AgentSpec(type="python", isolation="inline")
URL = "https://example.com/transfer"


def judged(check: str, settings: dict[str, Any], *trace: TraceEvent, agent: AgentSpec = STARTED) -> Verdict:
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
    found = judged(check, settings, unread)
    assert found.outcome == "unproven"
    assert found.code == "calls-hidden"
    assert judged(check, settings, NEVER_THERE).outcome == "pass"


def test_a_connection_elsewhere_or_a_rule_about_tools_is_not_in_doubt() -> None:
    assert judged("tool_not_called", {"tool": "https://other.org/*"}, PASSED_BY).outcome == "pass"
    assert judged("tool_not_called", {"tool": "transfer"}, PASSED_BY).outcome == "pass"
    assert judged("max_calls", {"max": 5, "plane": "tool"}, PASSED_BY).outcome == "pass"


def test_what_was_seen_for_certain_stays_a_fail_and_a_positive_rule_is_not_failed_blindly() -> None:
    sent = TraceEvent(0.3, "http_call", f"POST {URL}", "http", 1, status=200, write=True)
    assert judged("tool_not_called", {"tool": URL}, PASSED_BY, sent).outcome == "fail"
    assert judged("tool_called", {"tool": URL}, REFUSED).outcome == "unproven"
    assert judged("tool_called", {"tool": URL}).outcome == "fail"


@pytest.mark.parametrize(("check", "settings"), RULES)
@pytest.mark.parametrize("agent", [INLINE, AgentSpec(type="http", endpoint="http://agent")])
def test_where_nobody_sees_the_agents_http_a_rule_that_reads_it_never_passes(
    check: str, settings: dict[str, Any], agent: AgentSpec
) -> None:
    found = judged(check, settings, agent=agent)
    assert found.outcome == "unproven"
    assert "HTTP" in found.reason


def test_a_url_too_long_to_be_kept_whole_is_not_taken_for_another() -> None:
    from holdfast.planes.describe import shorten_target

    long = shorten_target("https://example.com/" + "a" * 900 + "/transfer/" + "b" * 900)
    event = TraceEvent(0.2, "http_call", f"GET {long}", "http", 1, status=200)
    assert judged("tool_not_called", {"tool": "https://example.com/*/transfer/*"}, event).outcome == "unproven"
    assert judged("tool_not_called", {"tool": "https://other.org/*"}, event).outcome == "pass"
