from __future__ import annotations

import pytest
from trace_events import found, http, llm, result, tool

from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT

BAD = {"error_type": "InjectedError", "fault": "error"}


def test_retries_within_counts_a_librarys_retries() -> None:
    calls = (llm(status=429), llm(1.0, status=429, retry=1), llm(2.0, retry=2))
    assert found("retries_within", *calls, max=2).passed
    assert found("retries_within", *calls, max=1).passed is False


def test_retries_within_counts_the_agents_own_repetitions_of_a_failed_request() -> None:
    calls = [tool("search", n / 10, '{"q":1}', **BAD) for n in range(4)]
    assert found("retries_within", *calls, max=3).passed
    assert found("retries_within", *calls, max=2).passed is False


def test_asking_again_after_success_or_asking_something_else_is_no_retry() -> None:
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


@pytest.mark.parametrize(
    "mode",
    [
        "error",
        "rate_limit",
        "timeout",
        "down",
        "reset_peer",
        "phantom_success",
        "auth_expired",
        "flapping",
        "dns_failure",
    ],
)
def test_a_write_that_a_fault_answered_in_its_place_was_not_done(mode: str) -> None:
    assert found("side_effect_once", tool("pay", fault=mode, error_type="E"), tool("pay", 1.0), tool="pay").passed


def test_a_write_whose_reply_was_lost_was_done() -> None:
    twice = found("side_effect_once", tool("pay", fault="lost_reply", error_type="E"), tool("pay", 1.0), tool="pay")
    assert twice.passed is False
    assert (twice.code, twice.key) == ("done-twice", ("pay",))


def test_a_tool_whose_result_was_changed_in_model_traffic_has_run() -> None:
    assert found("side_effect_once", result("pay", fault="error"), result("pay", 1.0), tool="pay").passed is False


def test_other_arguments_or_another_tool_is_another_write() -> None:
    calls = (tool("pay", input='{"a":1}'), tool("pay", 1.0, '{"a":2}'), tool("see", 2.0), tool("see", 3.0))
    assert found("side_effect_once", *calls, tool="pay").passed
    assert found("side_effect_once", *calls).passed is False


def test_requests_are_told_apart_by_their_digest_and_reading_twice_is_fine() -> None:
    twice = [http("POST https://x.example/pay", at, digest="d") for at in (0.0, 1.0)]
    assert found("side_effect_once", *twice).passed is False
    assert found("side_effect_once", twice[0], http("POST https://x.example/pay", 1.0, digest="e")).passed
    assert found("side_effect_once", http("GET https://x.example/"), http("GET https://x.example/", 1.0)).passed
    refused = http("POST https://x.example/pay", digest="d", status=400)
    assert found("side_effect_once", refused, twice[1]).passed


def test_a_failure_that_does_not_say_whether_it_was_done_is_unproven() -> None:
    lost = http("POST https://x.example/pay", digest="d", status=None, error_type="ConnectionReset")
    again = http("POST https://x.example/pay", 1.0, digest="d")
    assert found("side_effect_once", lost, again).passed is None


def test_the_same_idempotency_key_makes_a_repetition_harmless() -> None:
    header = [http("POST https://x.example/pay", at, digest="d", idempotency="k") for at in (0.0, 1.0)]
    assert found("side_effect_once", *header).passed
    field = [tool("pay", at, '{"a":1,"idempotency_key":"k"}', idempotency="k") for at in (0.0, 1.0)]
    assert found("side_effect_once", *field, tool="pay").passed


def test_a_new_idempotency_key_for_the_same_write_is_a_second_write() -> None:
    calls = [tool("pay", at, f'{{"a":1,"Idempotency-Key":"{at}"}}') for at in (0.0, 1.0)]
    assert found("side_effect_once", *calls, tool="pay").passed is False


def test_another_field_can_be_the_key() -> None:
    calls = [tool("pay", at, '{"a":1,"order":"o1"}') for at in (0.0, 1.0)]
    assert found("side_effect_once", *calls, tool="pay").passed is False
    assert found("side_effect_once", *calls, tool="pay", key="order").passed


def test_long_writes_that_differ_where_they_were_cut_are_not_the_same() -> None:
    long = shorten('{"note":"' + "x" * (2 * TEXT_KEPT) + '"}', TEXT_KEPT)
    calls = [tool("pay", at, long, digest=f"d{at}") for at in (0.0, 1.0)]
    assert found("side_effect_once", *calls, tool="pay").passed


def test_a_retry_counts_for_one_of_max_calls_and_retries_within_whether_its_library_says_so_or_not() -> None:
    for retry in ({}, {"retry": 1}):
        calls = (llm(status=529), llm(1.0, **retry), llm(2.0))
        assert found("max_calls", *calls, plane="llm", max=2).passed
        assert found("max_calls", *calls, plane="llm", max=1).passed is False
        assert found("retries_within", *calls, max=0).passed is False
        assert found("retries_within", *calls, max=1).passed


def test_a_failed_call_of_a_tool_that_the_agent_makes_again_is_its_own() -> None:
    assert found("max_calls", tool("a", **BAD), tool("a", 1.0), max=1).passed is False
