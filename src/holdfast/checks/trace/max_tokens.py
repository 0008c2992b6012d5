"""`max_tokens`: the agent's model calls stay within a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks.trace.calls import models, unsaid
from holdfast.model.exhibit import Exhibit
from holdfast.model.trace import Cost
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class MaxTokens:
    """All model calls of a trial together used no more than so many tokens."""

    max: Annotated[int, Meta(description="The most tokens that are fine.", ge=0, examples=[20000])]
    count: Annotated[Literal["total", "input", "output"], Meta(description="Which tokens are counted.")] = "total"

    polarity: ClassVar[Literal["positive", "negative"]] = "negative"
    reads: ClassVar[Literal["trace"]] = "trace"
    texts_read: ClassVar[tuple[str, ...]] = ()
    judges_deeds: ClassVar[bool] = False

    def decide(self, exhibit: Exhibit) -> Finding:
        asked = models(exhibit.observation.trace)
        if not asked:
            return Finding(None, "no model call was seen")
        used = sum(self._used(e.cost) for e in asked if e.cost is not None)
        kind = "" if self.count == "total" else f"{self.count} "
        if used > self.max:
            return Finding(False, f"{used} {kind}tokens, more than {self.max}")
        silent = unsaid(asked)
        if silent:
            return Finding(None, f"{silent}; the others: {used} {kind}tokens")
        return Finding(True, f"{used} {kind}tokens")

    def _used(self, cost: Cost) -> int:
        return {
            "total": cost.input_tokens + cost.output_tokens,
            "input": cost.input_tokens,
            "output": cost.output_tokens,
        }[self.count]
