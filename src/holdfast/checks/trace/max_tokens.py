"""`max_tokens`: the agent's model calls stay within a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks.trace.calls import describe_unreported, find_model_calls
from holdfast.model.exhibit import Exhibit
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
        model_calls = find_model_calls(exhibit.observation.trace)
        if not model_calls:
            return Finding(None, "no model call was seen", "no-model-call")
        used = sum(self._count_tokens(e.cost) for e in model_calls if e.cost is not None)
        kind = "" if self.count == "total" else f"{self.count} "
        if used > self.max:
            return Finding(False, f"{used} {kind}tokens, more than {self.max}", "tokens-above")
        silent = describe_unreported(model_calls)
        if silent:
            return Finding(None, f"{silent}; the others: {used} {kind}tokens", "tokens-unknown")
        return Finding(True, f"{used} {kind}tokens", "tokens-within")

    def _count_tokens(self, cost: Cost) -> int:
        return {
            "total": cost.input_tokens + cost.output_tokens,
            "input": cost.input_tokens,
            "output": cost.output_tokens,
        }[self.count]
