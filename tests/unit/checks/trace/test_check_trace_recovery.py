from __future__ import annotations

from collections.abc import Callable

import pytest
from trace_events import found, http, llm, result, tool

from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent

BAD = {"error_type": "InjectedError", "fault": "error"}


def test_retries_within_counts_a_librarys_retries() -> None:
    calls = (llm(status=429), llm(1.0, status=429, retry=1), llm(2.0, retry=2))
    assert found("retries_within", *calls, max=2).passed
    assert found("retries_within", *calls, max=1).passed is False


def test_retries_within_counts_the_agents_own_repetitions_of_a_failed_request() -> None:
    calls = [tool("search", n / 10, '{"q":1}', **BAD) for n in range(4)]
    assert found("retries_within", *calls, max=3).passed
    assert found("retries_within", *calls, max=2).passed is False


def test_asking_again_after_success_or_asking_something_else_is_not_a_retry() -> None:
    assert found("retries_within", tool("a"), tool("a", 1.0), tool("a", 2.0), max=0).passed
    assert found("retries_within", tool("a", input="1", **BAD), tool("a", 1.0, "2", **BAD), max=0).passed


def test_retries_within_of_one_tool() -> None:
    calls = (tool("a", **BAD), tool("a", 1.0, **BAD))
    assert found("retries_within", *calls, tool="b", max=0).passed
    assert found("retries_within", *calls, tool="a", max=0).passed is False


def test_recovers_within_ms_reads_the_time_from_the_last_faulty_call_to_the_good_one() -> None:
    calls = (tool("a", 0.0, duration_ms=100, **BAD), tool("a", 0.2, duration_ms=100, **BAD))
    good = tool("a", 0.5, duration_ms=100)
    assert found("recovers_within_ms", *calls, good, max_ms=300).passed
    late = found("recovers_within_ms", *calls, good, max_ms=299)
    assert late.passed is False
    assert (late.code, late.key) == ("recovered-late", ("a",))
    assert found("recovers_within_ms", *calls, tool("b", 0.5), max_ms=999).passed is False


def test_recovers_within_ms_without_a_fault_is_unproven() -> None:
    assert found("recovers_within_ms", tool("a"), max_ms=1).passed is None
    assert found("recovers_within_ms", tool("a", fault="slow"), max_ms=1).passed is None


def test_another_model_that_answers_is_a_recovery() -> None:
    other = llm(1.0)
    assert found("recovers_within_ms", llm(status=429, fault="rate_limit"), other, max_ms=5000).passed


ANSWERED = ("error", "rate_limit", "timeout", "down", "reset_peer", "phantom_success", "auth_expired", "dns_failure",
            "flapping")  # fmt: skip
"""Faults that answer in the tool's place, so the write was not done."""
LONG = shorten('{"note":"' + "x" * (2 * TEXT_KEPT) + '"}', TEXT_KEPT)
URL = "https://x.example/pay"


def twice(one: Callable[[float], TraceEvent]) -> tuple[TraceEvent, TraceEvent]:
    return one(0.0), one(1.0)


@pytest.mark.parametrize(
    ("calls", "settings", "passed"),
    [
        *(((tool("pay", fault=mode, error_type="E"), tool("pay", 1.0)), {"tool": "pay"}, True) for mode in ANSWERED),
        # A result that was changed in model traffic: the tool has run.
        ((result("pay", fault="error"), result("pay", 1.0)), {"tool": "pay"}, False),
        # Other arguments or another tool is another write.
        ((*twice(lambda at: tool("pay", at, str(at))), *twice(lambda at: tool("see", at))), {"tool": "pay"}, True),
        ((*twice(lambda at: tool("pay", at, str(at))), *twice(lambda at: tool("see", at))), {}, False),
        # Requests are told apart by their digest, and reading twice is fine.
        (twice(lambda at: http(f"POST {URL}", at, digest="d")), {}, False),
        ((http(f"POST {URL}", digest="d"), http(f"POST {URL}", 1.0, digest="e")), {}, True),
        (twice(lambda at: http(f"GET {URL}", at)), {}, True),
        ((http(f"POST {URL}", digest="d", status=400), http(f"POST {URL}", 1.0, digest="d")), {}, True),
        # A failure that does not say whether it was done.
        ((http(f"POST {URL}", digest="d", status=None, error_type="E"), http(f"POST {URL}", 1, digest="d")), {}, None),
        # The same idempotency key makes a repetition harmless, a new one does not.
        (twice(lambda at: http(f"POST {URL}", at, digest="d", idempotency="k")), {}, True),
        (twice(lambda at: tool("pay", at, '{"a":1,"idempotency_key":"k"}', idempotency="k")), {"tool": "pay"}, True),
        (twice(lambda at: tool("pay", at, f'{{"a":1,"Idempotency-Key":"{at}"}}')), {"tool": "pay"}, False),
        (twice(lambda at: tool("pay", at, '{"a":1,"order":"o1"}')), {"tool": "pay"}, False),
        (twice(lambda at: tool("pay", at, '{"a":1,"order":"o1"}')), {"tool": "pay", "key": "order"}, True),
        # Long writes that differ only where they were cut.
        (twice(lambda at: tool("pay", at, LONG, digest=f"d{at}")), {"tool": "pay"}, True),
    ],
)  # fmt: skip
def test_side_effect_once(calls: tuple[TraceEvent, ...], settings: dict[str, str], passed: bool | None) -> None:
    assert found("side_effect_once", *calls, **settings).passed is passed


def test_a_write_whose_reply_was_lost_was_done() -> None:
    finding = found("side_effect_once", tool("pay", fault="lost_reply", error_type="E"), tool("pay", 1.0), tool="pay")
    assert finding.passed is False
    assert (finding.code, finding.key) == ("done-twice", ("pay",))


def test_a_retry_counts_for_one_of_max_calls_and_retries_within_whether_its_library_says_so_or_not() -> None:
    for retry in ({}, {"retry": 1}):
        calls = (llm(status=529), llm(1.0, **retry), llm(2.0))
        assert found("max_calls", *calls, plane="llm", max=2).passed
        assert found("max_calls", *calls, plane="llm", max=1).passed is False
        assert found("retries_within", *calls, max=0).passed is False
        assert found("retries_within", *calls, max=1).passed


def test_a_failed_call_of_a_tool_that_the_agent_makes_again_is_its_own() -> None:
    assert found("max_calls", tool("a", **BAD), tool("a", 1.0), max=1).passed is False


def test_a_write_that_reported_an_error_may_be_repeated() -> None:
    declined, paid = tool("pay", output='{"error": "card declined"}'), tool("pay", 1.0, output='{"receipt": 7}')
    assert found("side_effect_once", declined, paid, tool="pay").passed is None
    assert found("side_effect_once", paid, paid, tool="pay").passed is False
