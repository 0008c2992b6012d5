"""`ending`: the agent ended in one of the allowed ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.wording import shorten, suggest_choice
from holdfast.model.endings import describe_ending
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import ENDINGS, Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class Ending:
    """The turn ended in one of the ways listed in `one_of`."""

    one_of: Annotated[
        tuple[str, ...], about(f"Endings that pass: {', '.join(ENDINGS)}.", examples=[["answered", "raised"]])
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="ending", see=("invariants.completes",))
    codes: ClassVar[Mapping[str, str]] = {
        "ended-as": "How the turn ended; the key names the ending.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        turn = exhibit.turn
        how = shorten(describe_ending(turn), 200)
        key = (turn.ending, compute_fingerprint(turn.detail))
        if turn.ending in self.one_of:
            return Finding(True, how, "ended-as", key)
        return Finding(False, f"{how}; expected {' or '.join(self.one_of)}, got {turn.ending}", "ended-as", key)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.one_of:
            yield "one_of", "needs at least one ending"
        for n, name in enumerate(self.one_of):
            if name not in ENDINGS:
                yield f"one_of[{n}]", f"unknown ending '{shorten(name)}'; {suggest_choice(name, ENDINGS)}"
