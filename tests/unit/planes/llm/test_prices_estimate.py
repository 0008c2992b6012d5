"""What a model call costs."""

from __future__ import annotations

import pytest

from holdfast.model.completion import Usage
from holdfast.model.spec import ModelSpec
from holdfast.planes.llm.prices import estimate, listed

MILLION = Usage(1_000_000, 1_000_000)


def test_prices_of_the_spec_win_over_the_list() -> None:
    own = {"gpt-4o": ModelSpec(input_usd=1, output_usd=2), "local-*": ModelSpec(input_usd=0.5)}
    assert estimate("gpt-4o", Usage(500_000, 250_000), own) == pytest.approx(1.0)
    assert estimate("local-7b", MILLION, own) == pytest.approx(0.5)


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
    assert listed(model) == listed(like) is not None
    assert estimate(model, MILLION, {}) == pytest.approx(sum(listed(like) or ()))


@pytest.mark.parametrize("model", ["", "my-own", "gpt-4o-audio-preview", "gpt-5-pro", "o3x"])
def test_prices_that_are_not_known_are_none(model: str) -> None:
    assert estimate(model, MILLION, {}) is None


def test_prices_of_a_renamed_model_are_those_of_its_name() -> None:
    assert estimate("fast", MILLION, {"fast": ModelSpec(name="gpt-4o-mini")}) == pytest.approx(0.75)
