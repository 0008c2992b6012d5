"""Rules on deeds where a tool ran in spite of its fault: unproven, with the ways out; rules on words are judged."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.judge import Judge
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import Evidence

TRIAL = Trial("abcdefabcdef", "contract", Scenario("s"), Task(("q",)))
CALLS = tuple(TraceEvent(n / 10, "tool_call", "pay", "tool_result", n, write=True, digest="d") for n in (1, 2))
MODEL = TraceEvent(0.3, "llm_call", "gpt-4o", "llm", 1, cost=Cost("gpt-4o", 10, 5, 0.001))


def on_result(mode: str, *, ran: bool = True, effect: str = "met") -> FaultMet:
    return FaultMet(0, "tool_result" if ran else "tool", "pay", mode, 1, effect, ran=ran)  # type: ignore[arg-type]


def judged(check: str, settings: dict[str, Any], *ledger: FaultMet, negate: bool = False) -> Verdict:
    rule = Invariant("r", check, settings, negate=negate)
    spec = Spec("c.yaml", AgentSpec(), invariants=(rule,))
    observation = Observation(
        TRIAL.id, (Turn("q", "paid"),), ledger, trace=(*CALLS, MODEL), evidence={"r": Evidence("[]", b"{}")}
    )
    return Judge(spec).judge(rule, TRIAL, observation)


DEEDS: list[tuple[str, dict[str, Any]]] = [
    ("side_effect_once", {"tool": "pay"}),
    ("tool_called", {"tool": "pay"}),
    ("tool_not_called", {"tool": "pay"}),
    ("max_calls", {"max": 1, "plane": "tool"}),
    ("retries_within", {"max": 3}),
]


@pytest.mark.parametrize(("check", "settings"), DEEDS)
@pytest.mark.parametrize("mode", ["error", "rate_limit", "auth_expired", "flapping"])
@pytest.mark.parametrize("negate", [False, True])
def test_a_rule_on_deeds_is_unproven_and_names_both_ways_out(
    check: str, settings: dict[str, Any], mode: str, negate: bool
) -> None:
    found = judged(check, settings, on_result(mode), negate=negate)
    assert (found.outcome, found.code) == ("unproven", "tool-ran")
    assert "agent.tools" in found.reason


@pytest.mark.parametrize(
    ("check", "settings", "outcome"),
    [
        ("contains", {"value": "paid"}, "pass"),
        ("contains", {"value": "sorry"}, "fail"),
        ("completes", {}, "pass"),
        ("latency", {"max_ms": 1000}, "pass"),
        ("max_tokens", {"max": 1}, "fail"),
        ("max_cost", {"max_usd": 1.0}, "pass"),
        ("max_calls", {"max": 0, "plane": "llm"}, "fail"),
    ],
)
def test_what_it_said_and_spent_is_judged(check: str, settings: dict[str, Any], outcome: str) -> None:
    assert judged(check, settings, on_result("error")).outcome == outcome


@pytest.mark.parametrize(
    "met",
    [
        on_result("lost_reply"),  # its purpose is that the tool ran
        on_result("wrong_value"),  # lets the tool run and changes its reply, wherever it acts
        on_result("indirect_injection"),
        on_result("error", effect="no_effect"),
        on_result("error", effect="erased"),
        on_result("error", ran=False),  # a declared tool: it did not run
    ],
    ids=lambda met: f"{met.mode}-{met.effect}-{met.ran}",
)
def test_deeds_are_judged_where_the_fault_is_true(met: FaultMet) -> None:
    assert judged("tool_called", {"tool": "pay"}, met).outcome == "pass"
    assert judged("tool_not_called", {"tool": "pay"}, met).outcome == "fail"


def test_one_such_fault_among_others_is_enough() -> None:
    assert judged("tool_called", {"tool": "pay"}, on_result("lost_reply"), on_result("error")).outcome == "unproven"
