"""What a model call costs."""

from __future__ import annotations

import pytest

from holdfast.model.completion import Usage
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.call_record import estimate_cost, find_listed_price

MILLION = Usage(1_000_000, 1_000_000)


def test_prices_of_the_spec_win_over_the_list() -> None:
    own = {"gpt-4o": ModelSpec(input_usd=1, output_usd=2), "local-*": ModelSpec(input_usd=0.5)}
    assert estimate_cost("gpt-4o", Usage(500_000, 250_000), own) == pytest.approx(1.0)
    assert estimate_cost("local-7b", MILLION, own) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("model", "like"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-4.1-nano", "gpt-4.1-nano"),
        ("models/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
    ],
)
def test_prices_are_of_the_longest_name_that_fits(model: str, like: str) -> None:
    assert find_listed_price(model) == find_listed_price(like) is not None
    assert estimate_cost(model, MILLION, {}) == pytest.approx(sum((find_listed_price(like) or ())[:2]))


@pytest.mark.parametrize("model", ["", "my-own", "gpt-4o-audio-preview", "gpt-5-pro", "o3x"])
def test_prices_that_are_not_known_are_none(model: str) -> None:
    assert estimate_cost(model, MILLION, {}) is None


def test_prices_of_a_renamed_model_are_those_of_its_name() -> None:
    assert estimate_cost("fast", MILLION, {"fast": ModelSpec(name="gpt-4o-mini")}) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("model", "share"),
    [("claude-sonnet-4", 0.1), ("gpt-4o", 0.5), ("gpt-4.1", 0.25), ("gpt-5", 0.1), ("gemini-2.0-flash", 0.25)],
)
def test_prices_of_tokens_read_from_a_cache_are_a_share_of_the_input(model: str, share: float) -> None:
    plain, cached = Usage(1_000_000, 0), Usage(1_000_000, 0, cached_input=1_000_000)
    full = estimate_cost(model, plain, {})
    assert full is not None
    assert estimate_cost(model, cached, {}) == pytest.approx(full * share)
    assert estimate_cost(model, Usage(2_000_000, 0, cached_input=1_000_000), {}) == pytest.approx(full * (1 + share))


def test_prices_of_tokens_written_to_a_cache_are_a_quarter_more() -> None:
    written = Usage(1_000_000, 0, cache_written=1_000_000)
    assert estimate_cost("claude-sonnet-4", written, {}) == pytest.approx(3.75)
    assert estimate_cost("gpt-4o", written, {}) == pytest.approx(2.50)


def test_prices_of_models_without_a_price_for_cached_tokens_are_those_of_the_input() -> None:
    cached = Usage(1_000_000, 0, cached_input=1_000_000)
    assert estimate_cost("gpt-3.5-turbo", cached, {}) == estimate_cost("gpt-3.5-turbo", Usage(1_000_000, 0), {})
    assert estimate_cost("m", cached, {"m": ModelSpec(input_usd=2)}) == pytest.approx(2.0)


def test_prices_count_no_more_cached_tokens_than_there_are() -> None:
    odd = Usage(10, 0, cached_input=1_000_000, cache_written=1_000_000)
    assert 0 <= (estimate_cost("claude-sonnet-4", odd, {}) or 0) <= 10 * 3.75 / 1_000_000
