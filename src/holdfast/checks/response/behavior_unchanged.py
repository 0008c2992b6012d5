"""`behavior_unchanged`: under chaos the agent answers as it does in calm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks import same_answer
from holdfast.checks.same_answer import By, ShortThreshold, Threshold
from holdfast.model.verdict import Finding
from holdfast.protocols import Exhibit


@dataclass(frozen=True)
class BehaviorUnchanged:
    """The answer is the same as the baseline: the agent's own calm answer, or a text given by hand."""

    baseline: Annotated[
        str, Meta(description="`auto` compares with a run without chaos; any other text is the baseline itself.")
    ] = "auto"
    similarity_threshold: Threshold = None
    threshold: ShortThreshold = None
    method: By = "lexical"

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["text", "ending", "latency"]] = "text"

    @property
    def needs_control(self) -> bool:
        """Whether a run without chaos must be there to compare with."""
        return self.baseline == "auto"

    def decide(self, exhibit: Exhibit) -> Finding:
        wanted = _calm_answer(exhibit) if self.needs_control else self.baseline
        if wanted is None:
            return Finding(None, "the control run gave no answer to compare with")
        needed = same_answer.threshold(self.threshold, self.similarity_threshold)
        what = "the calm answer" if self.needs_control else "the baseline"
        return same_answer.compare(wanted, exhibit.text, what, needed, self.method)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.baseline.strip():
            yield "baseline", "is empty: write `auto` or the text to compare with"
        yield from same_answer.problems(self.threshold, self.similarity_threshold, self.method)


def _calm_answer(exhibit: Exhibit) -> str | None:
    """The control's answer at the same turn, or None if it gave none."""
    if exhibit.control is None:
        return None
    turns = exhibit.observation.turns
    at = turns.index(exhibit.turn) if exhibit.turn in turns else len(turns) - 1
    calm = exhibit.control.turns[at] if 0 <= at < len(exhibit.control.turns) else None
    if calm is None or calm.ending != "answered" or not calm.text or not calm.text.strip():
        return None
    return calm.text
