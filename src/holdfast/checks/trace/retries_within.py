"""`retries_within`: a failed request is not repeated endlessly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.checks.trace.calls import Glob, calls, matches, named, naming, perhaps, repetitions, split, times
from holdfast.model.exhibit import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class RetriesWithin:
    """No failed request was repeated more than `max` times, by a client library or by the agent."""

    max: Annotated[int, Meta(description="The limit per request.", ge=0, examples=[3])]
    tool: Annotated[Glob | None, Meta(description="Count only this tool: a name, a glob or a URL.")] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative", reads="trace", see=("llm_faults.rate_limit", "invariants.recovers_within_ms")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "repeated-too-often": "A failed request was repeated too often.",
        "repeats-within": "Failed requests were repeated no more than allowed.",
    }

    def configured(self) -> CheckTraits:
        return naming(self.traits, tool=self.tool)

    def decide(self, exhibit: Exhibit) -> Finding:
        trace = calls(exhibit.observation.trace)
        events = [e for e in trace if self.tool is None or matches(e, self.tool)]
        made, requested = split(events)
        most, at = _most(made)
        if most > self.max:
            return Finding(
                False,
                f"{at} was asked the same {times(most)} again after it failed, more than {self.max}",
                "repeated-too-often",
                (at,),
            )
        sentence = f"{at} was asked the same {times(most)} again" if most else "no failed call was repeated"
        perhaps_most, _ = _most(events)
        if perhaps_most > self.max:
            return Finding(None, f"{sentence}; {perhaps(requested)}", "calls-unseen")
        return Finding(True, sentence, "repeats-within")


def _most(events: Sequence[TraceEvent]) -> tuple[int, str]:
    """The highest number of consecutive repeats of a failed request, and the request."""
    rows = repetitions(events)
    most = max(rows, default=0)
    return most, named(events[rows.index(most)]) if most else ""
