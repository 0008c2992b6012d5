"""Trace checks: asked once a trial, whatever the agent said."""

from __future__ import annotations

from typing import Any

from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
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
