"""`max_cost`: the agent's model calls cost no more than a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from holdfast.checks.trace.calls import USAGE_TRAITS, find_costs, judge_usage
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.observation import Exhibit
from holdfast.model.trace import Cost
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about

_SLACK = 1e-12
_CODES = ("cost-above", "cost-unknown", "cost-within")


@dataclass(frozen=True)
class MaxCost:
    """All model calls of a trial cost at most `max_usd`. A model without a known price is an error."""

    max_usd: Annotated[float, about("The limit in US dollars, estimated from tokens.", ge=0, examples=[0.5])]

    traits: ClassVar[CheckTraits] = replace(USAGE_TRAITS, see=("invariants.max_tokens", "invariants.max_calls"))
    codes: ClassVar[Mapping[str, str]] = {
        "cost-above": "The calls cost more than allowed.",
        "cost-unknown": "A model did not say how many tokens it used.",
        "cost-within": "The calls cost no more than allowed.",
        "no-model-call": "No model call was seen.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        costs = find_costs(exhibit.observation.trace)
        known_usd = sum(cost.estimated_usd or 0.0 for cost in costs)
        amount = f"about {format_dollars(known_usd)}{_describe_unbilled(costs)}"
        limit = format_dollars(self.max_usd)
        finding = judge_usage(exhibit.observation.trace, known_usd - _SLACK, self.max_usd, amount, limit, _CODES)
        unpriced = dict.fromkeys(cost.model or "a model" for cost in costs if _is_unknown(cost))
        if unpriced and finding.passed is not False:
            names = shorten(", ".join(unpriced), 120)
            raise HarnessError(
                f"the price of {names} is not known: set input_usd and output_usd under models", code="price-unknown"
            )
        return finding


def _is_unknown(cost: Cost) -> bool:
    """Return whether it used something whose price is unknown."""
    return cost.estimated_usd is None and bool(cost.input_tokens or cost.output_tokens)


def _describe_unbilled(costs: Sequence[Cost]) -> str:
    """Return how much of the sum nobody pays, because no provider was asked."""
    free = [cost.estimated_usd or 0.0 for cost in costs if not cost.billed]
    if not free:
        return ""
    share = "" if len(free) == len(costs) else f", {format_dollars(sum(free))} of it"
    return f"{share} at list price: a script or a recording answered"


def format_dollars(value: float) -> str:
    """Return an amount with as many digits as needed."""
    return f"${value:.2f}" if value >= 1 or not value else f"${value:.6f}".rstrip("0")
