"""What a check may look at."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.observation import Observation, Turn
from holdfast.model.world import Evidence


class Exhibit(Struct, frozen=True):
    """What a check may look at: one turn's text, with the whole observation around it."""

    text: str
    """The text under judgement; empty only if the check does not read text."""
    turn: Turn
    observation: Observation
    control: Observation | None = None
    """The calm answer to the same task, for checks with `needs_control`."""
    evidence: Evidence | None = None
    """What was gathered for this rule; None if nothing was."""
