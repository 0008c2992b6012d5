"""`output_not_empty`: the answer is not blank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class OutputNotEmpty:
    """The answer contains something other than whitespace."""

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")
    codes: ClassVar[Mapping[str, str]] = {
        "answer-empty": "The answer is empty.",
        "answered": "The agent answered.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        if exhibit.text.strip():
            return Finding(True, f"the answer has {len(exhibit.text)} characters", "answered")
        why = "the answer is only whitespace" if exhibit.text else "the answer is empty"
        return Finding(False, why, "answer-empty")
