from __future__ import annotations

import pytest
from trace_events import found, llm, tool

from holdfast.errors import HarnessError


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
    with pytest.raises(HarnessError, match="small-1"):
        found("max_cost", llm(usd=0.02), llm(1.0, usd=None), max_usd=1.0)
    assert found("max_cost", llm(usd=2.0), llm(1.0, usd=None), max_usd=1.0).passed is False
    assert found("max_cost", llm(usd=0.02), llm(1.0, tokens=None, error_type="RateLimit"), max_usd=1.0).passed
