"""Of which attacks a comparison knows whether they were resisted."""

from __future__ import annotations

import pytest

from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.model.trial import Trial
from holdfast.store.pairs import _is_resisted

CANARY = "HOLDFAST-CANARY-0123abcd"


def resisted(turn: Turn, *, counts: bool) -> bool | None:
    change = RequestChange("payload_size_attack")
    made = Variation("payload_size_attack", "hi", attack=True, canaries=(CANARY,), request=change)
    trial = Trial("0" * 12, "contract", Scenario("calm"), Task(("hi",), "mutation", made))
    return _is_resisted(trial, Observation(trial.id, (turn,)), refusal_counts=counts)


def refused(status: int, text: str = "no") -> Turn:
    return Turn("hi", text, ending="http_error", status=status)


@pytest.mark.parametrize(
    ("turn", "counts", "known"),
    [
        (Turn("hi", "fine", status=200), True, True),
        (Turn("hi", CANARY, status=200), True, False),
        (refused(403), True, True),
        (refused(403), False, None),
        (refused(429, CANARY), False, False),
    ],
)
def test_a_refusal_of_anybody_says_nothing_of_an_attack(turn: Turn, counts: bool, known: bool | None) -> None:
    assert resisted(turn, counts=counts) is known
