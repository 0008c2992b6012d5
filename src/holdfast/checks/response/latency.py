"""`latency`: the answer arrived in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class Latency:
    """The answer came within `max_ms`."""

    max_ms: Annotated[float, about("The limit in milliseconds.", ge=0, examples=[5000])]

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="latency", every_turn=True)
    codes: ClassVar[Mapping[str, str]] = {
        "in-time": "The answer arrived in time.",
        "no-answer-in-time": "The turn timed out.",
        "too-slow": "The answer took longer than allowed.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        turn = exhibit.turn
        latency_ms = turn.latency_ms
        if turn.ending == "timeout":
            return Finding(False, f"no answer in time: ended after {latency_ms:.0f} ms", "no-answer-in-time")
        if latency_ms <= self.max_ms:
            return Finding(True, f"took {latency_ms:.0f} ms of {self.max_ms:.0f} ms", "in-time")
        return Finding(False, f"took {latency_ms:.0f} ms, over the limit of {self.max_ms:.0f} ms", "too-slow")
