from __future__ import annotations

import pytest

from holdfast.model.scenario import Injection, Scenario, find_needed_injections, is_applicable


def weather(*planes: str) -> Scenario:
    return Scenario("s", tuple(Injection(plane, "*", "error") for plane in planes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("when", "met_by", "not_met_by"),
    [
        ("always", [(), ("tool",), ("context",)], []),
        ("tool_faults_active", [("tool",), ("mcp",), ("llm", "tool")], [(), ("llm",), ("context",)]),
        ("llm_faults_active", [("llm",), ("tool", "llm")], [(), ("tool",), ("mcp",)]),
        ("any_chaos_active", [("tool",), ("context",), ("world",)], [()]),
        ("no_chaos", [()], [("tool",), ("context",)]),
    ],
)
def test_when_is_decided_by_what_the_scenario_declares(when, met_by, not_met_by):
    assert all(is_applicable(when, weather(*planes)) for planes in met_by)
    assert not any(is_applicable(when, weather(*planes)) for planes in not_met_by)


def test_a_tool_rule_must_see_a_tool_fault_and_other_rules_any():
    mixed = weather("llm", "tool", "context", "mcp")
    assert find_needed_injections("tool_faults_active", mixed) == {1, 3}
    assert find_needed_injections("llm_faults_active", mixed) == {0}
    assert find_needed_injections("always", mixed) == find_needed_injections("any_chaos_active", mixed) == {0, 1, 2, 3}
    assert find_needed_injections("always", weather()) == frozenset()
