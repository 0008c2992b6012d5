"""One call that is seen in the agent's process and on the wire; and which faults let a call through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from trace_events import found, http, llm, tool

from holdfast import plugins
from holdfast.model.trace import TraceEvent
from holdfast.protocols.fault import FaultTraits, read_traits
from holdfast.score.run_totals import compute_spent


def function(ts: float = 0.0, **more: Any) -> TraceEvent:
    """A call of a model function that the agent names."""
    return TraceEvent(ts, "llm_call", "agent:model", "llm", 1, in_process=True, **{"duration_ms": 1000.0, **more})


def test_a_model_function_and_the_request_it_makes_are_one_call() -> None:
    trace = (function(), llm(0.5, usd=0.1), function(2.0), llm(2.5, usd=0.1))
    assert found("max_calls", *trace, max=2, plane="llm").passed
    assert found("max_calls", *trace, max=1, plane="llm").passed is False
    assert found("max_tokens", *trace, max=30).passed
    assert found("max_tokens", *trace, max=29).passed is False
    assert found("max_cost", *trace, max_usd=0.2).passed
    paid = compute_spent(trace)
    assert paid is not None
    assert (paid.calls, paid.tokens) == (2, 30)


def test_requests_next_to_a_model_function_count_and_one_that_sends_nothing_is_unknown() -> None:
    trace = (function(), llm(0.5), llm(5.0), llm(5.2))
    assert found("max_calls", *trace, max=2, plane="llm").passed is False
    assert found("max_tokens", function(), llm(5.0), max=100).passed is None
    held = function(phase="unfinished", duration_ms=0.0)
    assert found("max_calls", held, llm(9.0), max=1, plane="llm").passed


def test_a_tool_that_vanished_did_nothing() -> None:
    once = TraceEvent(0.1, "mcp_call", "pay", "mcp", 1, error_type="tool_gone", fault="tools_changed", write=True)
    again = TraceEvent(0.2, "mcp_call", "pay", "mcp", 2, write=True)
    assert found("side_effect_once", once, again, tool="pay").passed


@pytest.mark.parametrize(
    ("family", "never", "maybe"),
    [
        ("tool", {"auth_expired", "error", "flapping", "phantom_success", "rate_limit", "timeout"}, set()),
        ("http", {"dns_failure", "down", "partition", "reset_peer", "timeout", "tls_error"}, set()),
        ("mcp", {"session_lost", "tools_changed"}, {"crash_mid_call", "hang"}),
        ("context", set(), set()),
    ],
)
def test_each_fault_says_whether_the_call_arrives(family: str, never: set[str], maybe: set[str]) -> None:
    found_in = {name: read_traits(fault).reached for name, fault in plugins.list_plugins(f"faults.{family}")}
    assert {name for name, reached in found_in.items() if reached == "never"} == never
    assert {name for name, reached in found_in.items() if reached == "maybe"} == maybe


def test_a_plug_ins_fault_can_say_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Blackout:
        traits: ClassVar[FaultTraits] = FaultTraits(reached="never")

    real = plugins.find
    monkeypatch.setattr(plugins, "find", lambda family, name: Blackout if name == "blackout" else real(family, name))
    broken = tool("pay", 0.1, fault="blackout")
    assert found("side_effect_once", broken, tool("pay", 0.2), tool="pay").passed
    odd = tool("pay", 0.1, fault="of_a_plug_in_that_is_gone")
    assert found("side_effect_once", odd, tool("pay", 0.2), tool="pay").passed is None


def test_a_list_of_models_is_a_request_and_no_model_call() -> None:
    trace = (http("GET /v1/models"), llm(1.0, usd=0.1))
    assert found("max_tokens", *trace, max=15).passed
    assert found("max_calls", *trace, max=1, plane="llm").passed


def test_a_refused_call_counts_as_often_as_it_came() -> None:
    refused = http("GET https://a.example/", status=403, error_type="refused", times=3)
    assert found("max_calls", refused, max=3, plane="http").passed
    assert found("max_calls", refused, max=2, plane="http").passed is False
    assert found("retries_within", refused, max=1, tool="https://a.example/*").passed is False
