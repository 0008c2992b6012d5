"""`completes`: the agent answered; it did not crash or time out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from holdfast.checks.wording import shorten
from holdfast.model.endings import describe_ending
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Exhibit
from holdfast.model.plain_text import is_blank
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class Completes:
    """The agent gave an answer: no crash, no timeout, no empty reply."""

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="ending", every_turn=True, see=("invariants.ending", "invariants.output_not_empty")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "answer-empty": "The answer is empty.",
        "answered": "The agent answered.",
        "ended-as": "How the turn ended; the key names the ending.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        turn = exhibit.turn
        if turn.ending != "answered":
            key = (turn.ending, compute_fingerprint(turn.detail))
            return Finding(False, shorten(describe_ending(turn), 200), "ended-as", key)
        if is_blank(turn.text or ""):
            return Finding(False, "the answer is empty", "answer-empty")
        return Finding(True, "answered", "answered")
