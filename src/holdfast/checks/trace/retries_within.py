"""`retries_within`: a failed request is not repeated endlessly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.trace import calls
from holdfast.model.observation import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural


@dataclass(frozen=True)
class RetriesWithin:
    """No failed request was repeated more than `max` times, by a client library or by the agent."""

    max: Annotated[int, about("The limit per request.", ge=0, examples=[3])]
    tool: Annotated[calls.Glob | None, about("Count only this tool: a name, a glob or a URL.")] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative", reads="trace", see=("llm_faults.rate_limit", "invariants.recovers_within_ms")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "repeated-too-often": "A failed request was repeated too often.",
        "repeats-within": "Failed requests were repeated no more than allowed.",
    }

    def configured(self) -> CheckTraits:
        return calls.add_call_traits(self.traits, tool=self.tool)

    def decide(self, exhibit: Exhibit) -> Finding:
        trace = calls.find_calls(exhibit.observation.trace)
        events = [e for e in trace if calls.is_match(e, self.tool)]
        made, requested = calls.split_requested(events)
        most, at = _find_most_repeated(made)
        repeats = f"{at}: the same request was repeated {format_plural(most, 'time')}"
        if most > self.max:
            why = f"{repeats} after it failed, more than {self.max}"
            return Finding(False, why, "repeated-too-often", (at,))
        sentence = repeats if most else "no failed call was repeated"
        # Calls that a model only requested may have been made: with them the limit may be exceeded.
        perhaps_most, _ = _find_most_repeated(events)
        if perhaps_most > self.max:
            return Finding(None, f"{sentence}; {calls.describe_requested(requested)}", "calls-unseen")
        return Finding(True, sentence, "repeats-within")


def _find_most_repeated(events: Sequence[TraceEvent]) -> tuple[int, str]:
    """Return the highest number of consecutive repeats of a failed request, and the request."""
    # Retries of a client library and of the agent itself count alike: the service sees no difference.
    rows = calls.count_repetitions(events)
    most = max(rows, default=0)
    return most, calls.get_call_name(events[rows.index(most)]) if most else ""
