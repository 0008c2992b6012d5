"""`behavior_unchanged`: the agent answers under faults as it does in calm."""

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
class BehaviorUnchanged:
    """The answer is the same as the baseline: the agent's own calm answer, or your text."""

    baseline: Annotated[
        str, about("`auto` compares with a run without chaos; any other text is the baseline itself.")
    ] = "auto"
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
        see=("invariants.similarity", "llm_faults.response_drift"),
    )
    codes: ClassVar[Mapping[str, str]] = {
        **same_answer.CODES,
        "no-control-answer": "The control run gave no answer to compare with.",
    }

    def configured(self) -> CheckTraits:
        return replace(self.traits, needs_control=self._compares_with_calm, asks_model=self.method == "model")

    async def consult(
        self, observation: Observation, control: Observation | None, evidence: Evidence, ask: Ask
    ) -> Evidence:
        wanted = [
            _get_calm_text(control, at) if self._compares_with_calm else self.baseline
            for at in range(len(observation.turns))
        ]
        pairs = [
            (text, turn.text) if text and turn.text else None
            for text, turn in zip(wanted, observation.turns, strict=True)
        ]
        return await model_comparison.compare_turns(pairs, self._question, ask, self.model or "", self.votes or 1)

    def decide(self, exhibit: Exhibit) -> Finding:
        wanted = _find_calm_answer(exhibit) if self._compares_with_calm else self.baseline
        if wanted is None:
            return Finding(None, "the control run gave no answer to compare with", "no-control-answer")
        threshold = same_answer.get_threshold(self.threshold, self.similarity_threshold)
        what = "the calm answer" if self._compares_with_calm else "the baseline"
        if self.method == "model":
            return model_comparison.decide(exhibit, self._question, what, threshold)
        return same_answer.compare(wanted, exhibit.text, what, threshold, self.method)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.baseline.strip():
            yield "baseline", "is empty: write `auto` or the text to compare with"
        yield from same_answer.find_problems(
            self.threshold, self.similarity_threshold, self.method, self.model, self.votes
        )

    @property
    def _compares_with_calm(self) -> bool:
        return self.baseline == "auto"

    @property
    def _question(self) -> list[Any]:
        """The settings that the votes depend on, without the threshold, which may change later."""
        return ["behavior_unchanged", self.baseline, self.model, self.votes]


def _find_calm_answer(exhibit: Exhibit) -> str | None:
    """Return the control's answer at the same turn, or None if it gave none."""
    turns = exhibit.observation.turns
    return _get_calm_text(exhibit.control, turns.index(exhibit.turn) if exhibit.turn in turns else len(turns) - 1)


def _get_calm_text(control: Observation | None, at: int) -> str | None:
    calm = control.turns[at] if control is not None and 0 <= at < len(control.turns) else None
    if calm is None or calm.ending != "answered" or not calm.text or not calm.text.strip():
        return None
    return calm.text
