"""A call that a model asked for and whose result never came back may have been made: no rule reads it as not made."""

from __future__ import annotations

from typing import Any

import pytest
from trace_events import found, http, llm, result, tool

from holdfast.model.trace import TraceEvent


def asked(name: str = "pay", ts: float = 1.0, **more: Any) -> TraceEvent:
    return result(name, ts, phase="declared", digest=f"{name} 10", **more)


def paid(ts: float = 0.0, **more: Any) -> TraceEvent:
    return result("pay", ts, digest="pay 10", **more)


def test_a_second_payment_that_was_only_asked_for_may_have_been_done_twice() -> None:
    finding = found("side_effect_once", paid(), asked(), tool="pay")
    assert finding.passed is None
    assert finding.code == "maybe-done-twice"


def test_one_payment_that_was_only_asked_for_is_not_done_twice() -> None:
    assert found("side_effect_once", asked(), tool="pay").passed
    assert found("side_effect_once", paid(), asked("other"), tool="pay").passed


def test_two_payments_are_done_twice_whatever_was_asked_for_then() -> None:
    assert found("side_effect_once", paid(), paid(0.5), asked(), tool="pay").passed is False


@pytest.mark.parametrize(("max", "passed"), [(0, False), (1, None), (2, True)])
def test_max_calls_counts_what_was_asked_for_as_perhaps(max: int, passed: bool | None) -> None:
    finding = found("max_calls", llm(), paid(), asked(), max=max, plane="tool")
    assert finding.passed is passed
    assert passed is not None or "1 more" in finding.reason


@pytest.mark.parametrize(("at_most", "passed"), [(1, None), (2, True), (None, True)])
def test_tool_called_at_most_counts_what_was_asked_for_as_perhaps(at_most: int | None, passed: bool | None) -> None:
    assert found("tool_called", paid(), asked(), tool="pay", at_most=at_most).passed is passed


def test_tool_called_reads_the_arguments_of_what_was_asked_for() -> None:
    other = asked(input='{"to": "ann"}')
    assert found("tool_called", paid(), other, tool="pay", arguments={"to": "eve"}).passed is False
    assert found("tool_called", paid(), other, tool="pay", arguments={"to": "ann"}).passed is None


def test_tool_order_that_only_the_asked_for_call_decides_is_unproven() -> None:
    tools = ("look", "pay")
    assert found("tool_order", tool("look"), asked(), tools=tools).passed is None
    assert found("tool_order", asked(ts=0.1), tool("look", 0.5), tools=tools).passed is False
    strict = (tool("look"), asked("other", 0.5), tool("pay", 1.0))
    assert found("tool_order", *strict, tools=tools, strict=True).passed is None


def test_retries_within_counts_what_was_asked_for_as_perhaps() -> None:
    failed = paid(error_type="tool_error")
    assert found("retries_within", failed, asked(), max=0).passed is None
    assert found("retries_within", failed, asked(), max=1).passed


def test_recovery_by_a_call_that_was_only_asked_for_is_unproven() -> None:
    bad = paid(fault="error", error_type="tool_error")
    assert found("recovers_within_ms", bad, asked(), max_ms=100).passed is None
    assert found("recovers_within_ms", bad, asked("other"), max_ms=100).passed is False


def test_a_call_seen_at_work_is_not_also_one_that_was_only_asked_for() -> None:
    assert found("tool_called", asked(), tool("pay", 1.1), tool="pay", at_most=1).passed
    answered = (result("pay", 0.0), tool("pay", 0.1), tool("pay", 1.1), asked())
    assert found("tool_called", *answered, tool="pay", at_most=2).passed
    assert found("tool_called", *answered[:2], asked(), tool="pay", at_most=1).passed is None


def test_a_request_is_not_a_call_that_was_asked_for() -> None:
    assert found("max_calls", http("GET https://a.example/"), asked(), max=1, plane="http").passed
