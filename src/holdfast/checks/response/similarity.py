"""`similarity`: the answer says what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.same_answer import AnswerComparison
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.reading.fields import about


@dataclass(frozen=True)
class Similarity(AnswerComparison):
    """The answer says the same as `expected`, perhaps in other words."""

    expected: Annotated[str, about("The text to compare with.", examples=["The refund takes five days."])]

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="text",
        verbatim=True,
        compares_words=True,
        calls_per_vote=2,
        see=("invariants.behavior_unchanged", "invariants.llm_as_judge"),
    )

    @property
    def subject(self) -> tuple[str, str, str]:
        return "similarity", self.expected, "what was expected"

    def find_wanted(self, at: int, control: Observation | None) -> str:
        return self.expected

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.expected.strip():
            yield "expected", "is empty: there is nothing to compare with"
        yield from super().problems()
