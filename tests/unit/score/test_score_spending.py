"""What calls used, added up."""

from __future__ import annotations

from holdfast.model.trace import Cost, TraceEvent
from holdfast.score.spending import spent


def asked(model: str) -> TraceEvent:
    return TraceEvent(0.0, "llm_call", model, "llm", 1, cost=Cost(model, 5, 2))


def test_twenty_models_without_a_price_are_named() -> None:
    found = spent([asked(f"m{n:02}") for n in range(21)])
    assert found is not None
    assert found.unpriced == tuple(f"m{n:02}" for n in range(20))
    assert (found.calls, found.input_tokens, found.cost_usd) == (21, 105, None)
