"""`similarity`: the answer says what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from holdfast.checks import model_comparison, same_answer
from holdfast.checks.same_answer import AskedModel, By, ShortThreshold, Threshold, Votes
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Ask, Exhibit
from holdfast.reading.fields import about


@dataclass(frozen=True)
class Similarity:
    """The answer says the same as `expected`, perhaps in other words."""

    expected: Annotated[str, about("The text to compare with.", examples=["The refund takes five days."])]
    similarity_threshold: Threshold = None
    threshold: ShortThreshold = None
    method: By = "lexical"
    model: AskedModel = None
    votes: Votes = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="text",
        verbatim=True,
        compares_words=True,
        calls_per_vote=2,
        see=("invariants.behavior_unchanged", "invariants.llm_as_judge"),
    )
    codes: ClassVar[Mapping[str, str]] = same_answer.CODES

    def configured(self) -> CheckTraits:
        return replace(self.traits, asks_model=self.method == "model")

    async def consult(
        self, observation: Observation, control: Observation | None, evidence: Evidence, ask: Ask
    ) -> Evidence:
        pairs = [(self.expected, turn.text) if turn.text else None for turn in observation.turns]
        return await model_comparison.compare_turns(pairs, self._question, ask, self.model or "", self.votes or 1)

    def decide(self, exhibit: Exhibit) -> Finding:
        threshold = same_answer.get_threshold(self.threshold, self.similarity_threshold)
        if self.method == "model":
            return model_comparison.decide(exhibit, self._question, "what was expected", threshold)
        return same_answer.compare(self.expected, exhibit.text, "what was expected", threshold, self.method)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.expected.strip():
            yield "expected", "is empty: there is nothing to compare with"
        yield from same_answer.find_problems(
            self.threshold, self.similarity_threshold, self.method, self.model, self.votes
        )

    @property
    def _question(self) -> list[Any]:
        """The settings that the votes depend on, without the threshold, which may change later."""
        return ["similarity", self.expected, self.model, self.votes]
