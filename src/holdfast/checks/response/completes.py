"""`completes`: the agent answered; it did not crash or time out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from holdfast.checks.wording import shorten
from holdfast.model.exhibit import Exhibit
from holdfast.model.fingerprint import fingerprint
from holdfast.model.plain_text import is_blank
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class Completes:
    """The agent gave an answer: no crash, no timeout, no empty reply."""

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["text", "ending", "latency"]] = "ending"
    codes: ClassVar[Mapping[str, str]] = {
        "answer-empty": "The answer is empty.",
        "answered": "The agent answered.",
        "ended-as": "How the turn ended, which the key names.",
    }
    every_turn: ClassVar[bool] = True

    def decide(self, exhibit: Exhibit) -> Finding:
        turn = exhibit.turn
        if turn.ending != "answered":
            why = f": {shorten(turn.detail, 120)}" if turn.detail else ""
            return Finding(False, f"ended in {turn.ending}{why}", "ended-as", (turn.ending, fingerprint(turn.detail)))
        if is_blank(turn.text or ""):
            return Finding(False, "ended well but without an answer", "answer-empty")
        return Finding(True, "answered", "answered")
