"""Exhibits for the tests of checks."""

from __future__ import annotations

from typing import Any

from holdfast.model.observation import Observation, Turn
from holdfast.protocols.check import Exhibit


def exhibit(text: str = "", *, control: str | None = None, **turn: Any) -> Exhibit:
    """One turn with that text; `control` is the text of a calm run of one turn."""
    only = Turn(asked="?", text=text, **turn)
    calm = None if control is None else Observation(trial="c", turns=(Turn(asked="?", text=control),))
    return Exhibit(text=text, turn=only, observation=Observation(trial="t", turns=(only,)), control=calm)


def of_turns(*turns: Turn, judged: int = -1, control: Observation | None = None) -> Exhibit:
    """Several turns, of which one is judged."""
    turn = turns[judged]
    return Exhibit(text=turn.text or "", turn=turn, observation=Observation(trial="t", turns=turns), control=control)
