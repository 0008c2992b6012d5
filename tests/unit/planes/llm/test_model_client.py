"""What a model's server rejects is read from its own words, and from nothing that Holdfast adds to them."""

from __future__ import annotations

import pytest

from holdfast.planes.llm.sources.model_client import ModelRefused, Question, drop_rejected

QUESTION = Question("judge-1", "Rate it.", "The answer")


@pytest.mark.parametrize(
    ("explanation", "dropped"),
    [
        ("Unsupported value: 'temperature' does not support 0", "temperature"),
        ("response_format of this type is not available", "json"),
        ("a system message is not allowed", "apart"),
    ],
)
def test_a_rejected_setting_is_left_out(explanation: str, dropped: str) -> None:
    changed = drop_rejected(QUESTION, ModelRefused("http://127.0.0.1:9", 400, explanation))
    assert changed is not None
    names = ("temperature", "json", "apart")
    assert [name for name in names if getattr(changed[0], name) != getattr(QUESTION, name)] == [dropped]


@pytest.mark.parametrize("origin", ["http://json.example", "http://temperature.example", "http://system.example"])
def test_words_in_the_address_are_not_a_reason(origin: str) -> None:
    assert drop_rejected(QUESTION, ModelRefused(origin, 400, "the model does not exist")) is None
