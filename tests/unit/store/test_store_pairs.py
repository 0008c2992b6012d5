"""Of which attacks a comparison knows whether they were resisted."""

from __future__ import annotations

import pytest

from holdfast.model.observation import Observation, Turn
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.model.trial import Trial
from holdfast.store.pairs import _resisted

CANARY = "HOLDFAST-CANARY-0123abcd"
ANSWERED = Observation("0" * 12, (Turn("hi", "fine", status=200),))


def resisted(turn: Turn, again: Observation | None = None) -> bool | None:
    change = RequestChange("payload_size_attack")
    made = Variation("payload_size_attack", "hi", attack=True, canaries=(CANARY,), request=change)
    trial = Trial("0" * 12, "contract", "calm", Task(("hi",), "mutation", made))
    return _resisted(trial, Observation(trial.id, (turn,), asked_again=again))


def refused(status: int) -> Turn:
    return Turn("hi", "no", ending="http_error", status=status)


@pytest.mark.parametrize(
    ("turn", "again", "known"),
    [
        (Turn("hi", "fine", status=200), None, True),
        (Turn("hi", CANARY, status=200), None, False),
        (refused(403), ANSWERED, True),
        (refused(403), None, None),
        (refused(403), Observation("0" * 12, (refused(403),)), None),
        (refused(429), ANSWERED, None),
        (Turn("hi", CANARY, ending="http_error", status=429), None, False),
    ],
)
def test_a_refusal_of_anybody_says_nothing_of_an_attack(
    turn: Turn, again: Observation | None, known: bool | None
) -> None:
    assert resisted(turn, again) is known
