"""The input of a check."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.observation import Observation, Turn
from holdfast.model.world import Evidence


class Exhibit(Struct, frozen=True):
    """The input of a check: one turn's text, with the complete observation."""

    text: str
    """The text to judge; empty only if the check does not read text."""
    turn: Turn
    observation: Observation
    control: Observation | None = None
    """The calm answer to the same task, for checks with `needs_control`."""
    evidence: Evidence | None = None
    """The evidence gathered for this rule; None if there is none."""
