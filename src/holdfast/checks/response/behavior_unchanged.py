"""`behavior_unchanged`: the agent answers under faults as it does in calm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from holdfast.checks.same_answer import CODES, AnswerComparison
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.reading.fields import about


@dataclass(frozen=True)
class BehaviorUnchanged(AnswerComparison):
    """The answer is the same as the baseline: the agent's own calm answer, or your text."""

    baseline: Annotated[
        str, about("`auto` compares with a run without chaos; any other text is the baseline itself.")
    ] = "auto"

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="text",
        verbatim=True,
        compares_words=True,
        calls_per_vote=2,
        see=("invariants.similarity", "llm_faults.response_drift"),
    )
    codes: ClassVar[Mapping[str, str]] = {
        **CODES,
        "no-control-answer": "The control run gave no answer to compare with.",
    }

    def configured(self) -> CheckTraits:
        traits: CheckTraits = super().configured()
        return replace(traits, needs_control=self.baseline == "auto")

    @property
    def subject(self) -> tuple[str, str, str]:
        return "behavior_unchanged", self.baseline, "the calm answer" if self.baseline == "auto" else "the baseline"

    def find_wanted(self, at: int, control: Observation | None) -> str | None:
        if self.baseline != "auto":
            return self.baseline
        calm = control.turns[at] if control is not None and 0 <= at < len(control.turns) else None
        return calm.text if calm is not None and calm.ending == "answered" and (calm.text or "").strip() else None

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.baseline.strip():
            yield "baseline", "is empty: write `auto` or the text to compare with"
        yield from super().problems()
