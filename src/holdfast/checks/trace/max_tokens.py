"""`max_tokens`: the agent's model calls stay within a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks.trace.calls import NO_MODEL_CALL, find_usage
from holdfast.model.observation import Exhibit
from holdfast.model.trace import Cost
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class MaxTokens:
    """All model calls of a trial used at most `max` tokens."""

    max: Annotated[int, Meta(description="The limit.", ge=0, examples=[20000])]
    count: Annotated[Literal["total", "input", "output"], Meta(description="The tokens to count.")] = "total"

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative",
        reads="trace",
        texts=(),
        deeds=False,
        reads_cost=True,
        see=("invariants.max_cost", "invariants.max_calls"),
        standards=("LLM10:2025",),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "no-model-call": "No model call was seen.",
        "tokens-above": "More tokens were used than allowed.",
        "tokens-unknown": "A model did not say how many tokens it used.",
        "tokens-within": "No more tokens were used than allowed.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        usage = find_usage(exhibit.observation.trace)
        if usage is None:
            return NO_MODEL_CALL
        costs, silent = usage
        used = sum(map(self._count_tokens, costs))
        kind = "" if self.count == "total" else f"{self.count} "
        if used > self.max:
            return Finding(False, f"{used} {kind}tokens, more than {self.max}", "tokens-above")
        if silent:
            return Finding(None, f"{silent}; the others: {used} {kind}tokens", "tokens-unknown")
        return Finding(True, f"{used} {kind}tokens", "tokens-within")

    def _count_tokens(self, cost: Cost) -> int:
        return {
            "total": cost.input_tokens + cost.output_tokens,
            "input": cost.input_tokens,
            "output": cost.output_tokens,
        }[self.count]
