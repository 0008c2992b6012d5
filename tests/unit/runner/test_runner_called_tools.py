"""Rules that pass because nothing called their tool."""

from __future__ import annotations

import pytest

from holdfast.model.observation import Observation
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.trace import TraceEvent
from holdfast.runner.across_trials import CalledTools


def warned(rule: Invariant, *called: str) -> list[str]:
    tools = CalledTools(Spec("spec.yaml", AgentSpec(), "s", invariants=(rule,)))
    for name in called:
        tools.add(Observation("t", trace=(TraceEvent(0, "tool_call", name), TraceEvent(0, "llm_call", "some-model"))))
    return [warning.text for warning in tools.build_warnings()]


ORDERED = Invariant("refunds", "only_after", {"tool": "isue_refund", "requires": "lookup"})


def test_a_tool_that_no_trial_called_is_named_with_those_that_were() -> None:
    (text,) = warned(ORDERED, "lookup", "issue_refund")
    assert "isue_refund" in text
    assert "issue_refund, lookup" in text


def test_each_name_of_the_rule_counts() -> None:
    assert len(warned(ORDERED)) == 2
    assert warned(ORDERED, "lookup", "isue_refund") == []


@pytest.mark.parametrize(
    "rule",
    [
        Invariant("never", "tool_not_called", {"tool": "drop_table"}),
        Invariant("asks", "tool_called", {"tool": "search"}),
        Invariant("says", "contains", {"value": "x"}),
    ],
)
def test_rules_that_forbid_calls_or_fail_without_them_are_left_alone(rule: Invariant) -> None:
    assert warned(rule, "lookup") == []


def test_a_forbidden_tool_that_looks_like_one_that_was_called_is_suspect() -> None:
    (text,) = warned(Invariant("never", "tool_not_called", {"tool": "isue_refund"}), "issue_refund")
    assert "isue_refund" in text
