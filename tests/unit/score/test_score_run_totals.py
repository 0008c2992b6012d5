"""What calls used, added up."""

from __future__ import annotations

from collections import Counter

import pytest

from golden_words import Golden
from holdfast.model.score import Spent
from holdfast.model.spec import Invariant
from holdfast.model.trace import Cost, TraceEvent
from holdfast.score.run_totals import BadEndings, compute_spent


def asked(model: str) -> TraceEvent:
    return TraceEvent(0.0, "llm_call", model, "llm", 1, cost=Cost(model, 5, 2))


def test_twenty_models_without_a_price_are_named() -> None:
    found = compute_spent([asked(f"m{n:02}") for n in range(21)])
    assert found is not None
    assert found.unpriced == tuple(f"m{n:02}" for n in range(20))
    assert (found.calls, found.input_tokens, found.cost_usd) == (21, 105, None)


def test_a_script_uses_no_tokens_and_its_replies_are_counted() -> None:
    scripted = TraceEvent(0.0, "llm_call", "m", "llm", 1, cost=Cost("m", 5, 2, 0.5, billed=False), script="m.yaml:7")
    refused = TraceEvent(0.1, "llm_call", "m", "llm", 2, status=429, script="m.yaml:9")
    listed = TraceEvent(0.2, "http_call", "GET /models", "llm", script="m.yaml")
    assert compute_spent([scripted, refused, listed]) == Spent(3, scripted=2)
    assert compute_spent([scripted, asked("paid")]) == Spent(2, 0, 5, 2, unpriced=("paid",), scripted=1)


def notes_of_12(check: str, judged: set[str], **endings: int) -> list[str]:
    made = BadEndings([Invariant("r", check, {"value": "x"} if check == "contains" else {})])
    made.unjudged, made.judged = Counter(endings), judged
    return [*made.describe_endings(12)]


def test_endings_that_failed_no_rule_are_counted(golden: Golden) -> None:
    golden(notes_of_12("contains", set(), timeout=3, crashed=1, no_answer=5))
    assert notes_of_12("contains", set()) == []


@pytest.mark.parametrize(("judged", "notes"), [({"crashed"}, 1), ({"crashed", "timeout"}, 0), (set(), 2)])
def test_endings_by_which_a_rule_on_endings_failed_are_known(judged: set[str], notes: int) -> None:
    found = notes_of_12("completes", judged, timeout=3, crashed=1)
    assert len(found) == notes
    assert not any("completes" in note for note in found)
