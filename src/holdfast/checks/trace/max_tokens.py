"""`max_tokens`: the agent's model calls stay within a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace

from holdfast.checks.trace.calls import USAGE_TRAITS, find_costs, judge_usage
from holdfast.model.observation import Exhibit
from holdfast.model.trace import Cost
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about

_CODES = ("tokens-above", "tokens-unknown", "tokens-within")


@dataclass(frozen=True)
class MaxTokens:
    """All model calls of a trial used at most `max` tokens."""

    max: Annotated[int, about("The limit.", ge=0, examples=[20000])]
    count: Annotated[Literal["total", "input", "output"], about("The tokens to count.")] = "total"

    traits: ClassVar[CheckTraits] = replace(USAGE_TRAITS, see=("invariants.max_cost", "invariants.max_calls"))
    codes: ClassVar[Mapping[str, str]] = {
        "no-model-call": "No model call was seen.",
        "tokens-above": "More tokens were used than allowed.",
        "tokens-unknown": "A model did not say how many tokens it used.",
        "tokens-within": "No more tokens were used than allowed.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        trace = exhibit.observation.trace
        used = sum(map(self._count_tokens, find_costs(trace)))
        words = f"{used} tokens" if self.count == "total" else f"{used} {self.count} tokens"
        return judge_usage(trace, used, self.max, words, str(self.max), _CODES)

    def _count_tokens(self, cost: Cost) -> int:
        return (self.count != "output") * cost.input_tokens + (self.count != "input") * cost.output_tokens
