"""`max_cost`: the agent's model calls stay within a sum of money."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks.trace.calls import models
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Finding
from holdfast.protocols import Exhibit

_SLACK = 1e-12


@dataclass(frozen=True)
class MaxCost:
    """All model calls of a trial together cost no more than so much; a model without a known price is an error."""

    max_usd: Annotated[float, Meta(description="The most US dollars that are fine, estimated from tokens.", ge=0)]

    polarity: ClassVar[Literal["positive", "negative"]] = "negative"
    reads: ClassVar[Literal["trace"]] = "trace"

    def decide(self, exhibit: Exhibit) -> Finding:
        asked = models(exhibit.observation.trace)
        if not asked:
            return Finding(None, "no model call was seen")
        known = sum(e.cost.estimated_usd or 0.0 for e in asked if e.cost is not None)
        if known > self.max_usd + _SLACK:
            return Finding(False, f"about {dollars(known)}, more than {dollars(self.max_usd)}")
        unpriced = dict.fromkeys(_model(e) for e in asked if _unknown(e))
        if unpriced:
            names = shorten(", ".join(unpriced), 120)
            raise HarnessError(f"the price of {names} is not known: give input_usd and output_usd under models")
        return Finding(True, f"about {dollars(known)}")


def _unknown(event: TraceEvent) -> bool:
    """Whether it used something whose price nobody has told us."""
    if event.cost is None:
        return not event.failed
    return event.cost.estimated_usd is None and bool(event.cost.input_tokens or event.cost.output_tokens)


def _model(event: TraceEvent) -> str:
    return (event.cost.model if event.cost else "") or event.tool or "a model"


def dollars(value: float) -> str:
    """An amount with as many digits as it takes to see it."""
    return f"${value:.2f}" if value >= 1 or not value else f"${value:.6f}".rstrip("0")
