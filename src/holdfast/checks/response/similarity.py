"""`similarity`: the answer says what was expected."""

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
class Similarity:
    """The answer is the same as `expected`, in other words perhaps; changed numbers, names or a negation are not."""

    expected: Annotated[str, Meta(description="The answer to compare with.")]
    similarity_threshold: Threshold = None
    threshold: ShortThreshold = None
    method: By = "lexical"

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["text", "ending", "latency"]] = "text"

    def decide(self, exhibit: Exhibit) -> Finding:
        needed = same_answer.threshold(self.threshold, self.similarity_threshold)
        return same_answer.compare(self.expected, exhibit.text, "what was expected", needed, self.method)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.expected.strip():
            yield "expected", "is empty: there is nothing to compare with"
        yield from same_answer.problems(self.threshold, self.similarity_threshold, self.method)
