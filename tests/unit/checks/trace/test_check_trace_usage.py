from __future__ import annotations

import pytest
from trace_events import found, llm, tool

from error_code import has_code
from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.model.trace import Cost, TraceEvent


def test_max_tokens_counts_all_model_calls_retries_too() -> None:
    calls = (llm(), llm(1.0, retry=1), tool("a", 2.0))
    assert found("max_tokens", *calls, max=30).passed
    assert found("max_tokens", *calls, max=29).passed is False
    assert found("max_tokens", *calls, max=20, count="input").passed
    assert found("max_tokens", *calls, max=9, count="output").passed is False


def test_max_tokens_is_unproven_where_a_call_did_not_say_what_it_used() -> None:
    silent = llm(1.0, tokens=None)
    assert found("max_tokens", llm(), silent, max=100).passed is None
    assert found("max_tokens", llm(), silent, max=10).passed is False
    assert found("max_tokens", llm(), llm(1.0, tokens=None, status=429), max=100).passed
    assert found("max_tokens", tool("a"), max=100).passed is None


def test_max_cost_adds_up_what_is_known() -> None:
    calls = (llm(usd=0.02), llm(1.0, usd=0.03))
    assert found("max_cost", *calls, max_usd=0.05).passed
    assert found("max_cost", *calls, max_usd=0.049).passed is False
    assert found("max_cost", tool("a"), max_usd=1.0).passed is None


def test_max_cost_with_an_unknown_price_is_an_error_that_names_the_model_never_a_pass() -> None:
    with pytest.raises(HarnessError, check=has_code("price-unknown")):
        found("max_cost", llm(usd=0.02), llm(1.0, usd=None), max_usd=1.0)
    assert found("max_cost", llm(usd=2.0), llm(1.0, usd=None), max_usd=1.0).passed is False
    assert found("max_cost", llm(usd=0.02), llm(1.0, tokens=None, error_type="RateLimit"), max_usd=1.0).passed


def test_a_reply_that_does_not_say_what_it_used_is_named_as_such_and_not_as_a_missing_price() -> None:
    for check, limit in (("max_cost", {"max_usd": 1.0}), ("max_tokens", {"max": 100})):
        finding = found(check, llm(usd=0.1), llm(1.0, tokens=None), **limit)
        assert finding.passed is None
        assert "small-1" in finding.reason
    assert found("max_cost", llm(usd=2.0), llm(1.0, tokens=None), max_usd=1.0).passed is False


def test_what_a_script_would_have_cost_is_said_to_be_a_list_price(golden: Golden) -> None:
    scripted = TraceEvent(0.0, "llm_call", "small-1", "llm", cost=Cost("small-1", 10, 5, 0.25, billed=False))
    passed, failed = (found("max_cost", scripted, max_usd=limit) for limit in (1.0, 0.1))
    assert (passed.passed, failed.passed) == (True, False)
    golden(passed.reason)
    assert "at list price" in failed.reason
    mixed = found("max_cost", scripted, llm(1.0, usd=0.5), max_usd=1.0)
    golden(mixed.reason)
