"""`recovers_within_ms`: after a fault, a good call of the same target follows soon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.trace import calls
from holdfast.checks.trace.call_content import reports_error
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class RecoversWithinMs:
    """After the last faulty call of a target, a good one ended in time."""

    max_ms: Annotated[
        float, about("The limit, from the end of the faulty call to the end of the good one.", ge=0, examples=[5000])
    ]
    tool: Annotated[calls.Glob | None, about("Count only this tool: a name, a glob or a URL.")] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="trace", texts=("target",), see=("tool_faults.flapping", "invariants.retries_within")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "no-fault-met": "No call met a fault to recover from.",
        "not-recovered": "No successful call followed a failed one.",
        "recovered": "A successful call followed every failed one in time.",
        "recovered-late": "The next successful call was too late.",
    }

    def configured(self) -> CheckTraits:
        return calls.add_call_traits(self.traits, tool=self.tool)

    def decide(self, exhibit: Exhibit) -> Finding:
        trace = calls.find_calls(exhibit.observation.trace)
        made, requested = calls.split_requested(e for e in trace if calls.is_match(e, self.tool))
        last = {_get_target(e): e for e in made if _is_faulty(e)}
        if not last:
            return Finding(None, "no call met a fault to recover from", "no-fault-met")
        slowest = 0.0
        for target, bad in last.items():
            name, fault = calls.get_call_name(bad), shorten(bad.fault, 40)
            later = [e for e in made if e.ts > bad.ts and _get_target(e) == target]
            good = next((e for e in later if _is_good(e)), None)
            if good is not None:
                slowest = max(slowest, recovery_ms := max(0.0, _get_end_ms(good) - _get_end_ms(bad)))
                if recovery_ms > self.max_ms:
                    why = f"{name} took {recovery_ms:.0f} ms to recover, more than {self.max_ms:g}"
                    return Finding(False, why, "recovered-late", (name,))
            elif any(_is_good(e) is None for e in later):
                why = f"every result of {name} after the fault has content, but also reports an error"
                return Finding(None, why, "calls-unseen")
            elif any(e.ts > bad.ts and _get_target(e) == target for e in requested):
                why = f"{name} met {fault}; {calls.describe_requested(requested)}"
                return Finding(None, why, "calls-unseen")
            else:
                return Finding(False, f"{name} met {fault} and no successful call followed", "not-recovered", (name,))
        return Finding(True, f"recovered within {slowest:.0f} ms", "recovered")


def _get_target(event: TraceEvent) -> tuple[str, str]:
    return event.event_type, "" if event.event_type == "llm_call" else event.tool


def _is_faulty(event: TraceEvent) -> bool:
    """Return whether a fault hit it and it did not succeed nevertheless."""
    return bool(event.fault) and (event.failed or event.phase == "unfinished" or not calls.is_harmless(event))


def _is_good(event: TraceEvent) -> bool | None:
    """Return whether the call succeeded; None if its result both has content and reports an error."""
    if event.phase != "done" or event.failed or _is_faulty(event):
        return False
    error = reports_error(event) if event.event_type in calls.OF_TOOLS else False
    return None if error is None else not error


def _get_end_ms(event: TraceEvent) -> float:
    return event.ts * 1000 + event.duration_ms
