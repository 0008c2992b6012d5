"""`only_after`: a tool is called only after another one."""

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
from holdfast.reading.words import format_plural

_SLACK_S = 1e-6
"""Rounding error when a duration is added to a start time."""


@dataclass(frozen=True)
class OnlyAfter:
    """Every call of `tool` came after a successful call of `requires`."""

    tool: Annotated[calls.Glob, about("The dependent tool: a name, a glob or a URL.", examples=["issue_refund"])]
    requires: Annotated[
        calls.Glob, about("The tool that must come first: a name, a glob or a URL.", examples=["lookup_order"])
    ]
    successful: Annotated[
        bool, about("The call of `requires` must have succeeded, without an error in its result.")
    ] = True

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative", reads="trace", texts=("target",), see=("invariants.tool_order", "tool_faults.error")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "order-broken": "The tool was called without an earlier call of the required tool.",
        "order-kept": "The tool was never called without an earlier call of the required tool.",
    }

    def configured(self) -> CheckTraits:
        return calls.add_call_traits(self.traits, tool=self.tool, requires=self.requires)

    def decide(self, exhibit: Exhibit) -> Finding:
        events = calls.find_calls(exhibit.observation.trace)
        needs = [e for e in events if calls.is_match(e, self.tool)]
        before = [e for e in events if calls.is_match(e, self.requires)]
        counting = [e for e in before if self._is_counted(e)]
        bare = [e for e in needs if not any(_has_ended_before(one, e) for one in counting)]
        # If a model only requested a call, it is unknown whether it was made, and how it ended.
        doubtful = [e for e in before if e.phase == "declared" or (e not in counting and _is_half_done(e))]
        wrong = [e for e in bare if e.phase != "declared" and not any(one.ts <= e.ts for one in doubtful)]
        details = calls.list_calls(wrong or needs)
        if not bare:
            count = (
                f"called {format_plural(len(needs), 'time')}, always after {shorten(self.requires)}"
                if needs
                else "not called"
            )
            return Finding(True, f"{shorten(self.tool)} was {count}", "order-kept", details=details)
        if not wrong:
            unseen = next((e for e in bare if e.phase == "declared"), None) or doubtful[0]
            if unseen.phase == "declared":
                why = f"the model requested {calls.get_call_name(unseen)}; whether it was called is unknown"
            else:
                why = f"the result of {calls.get_call_name(unseen)} both has content and reports an error"
            return Finding(None, why, "calls-unseen", details=details)
        how = " successful" if self.successful else ""
        others = f"; {format_plural(len(before), 'call')} of it failed or came too late" if before else ""
        name = calls.get_call_name(wrong[0])
        why = f"{name} was called without an earlier{how} call of {shorten(self.requires)}{others}"
        return Finding(False, why, "order-broken", (name,), details=details)

    def _is_counted(self, event: TraceEvent) -> bool:
        """Return whether the call was made and, if required, succeeded from the agent's view."""
        if event.phase == "declared":
            return False
        return not self.successful or (event.phase == "done" and not event.failed and reports_error(event) is False)


def _is_half_done(event: TraceEvent) -> bool:
    return event.phase == "done" and not event.failed and reports_error(event) is None


def _has_ended_before(first: TraceEvent, then: TraceEvent) -> bool:
    """Return whether the first call had ended when the other began: the result of a parallel call is not known yet."""
    return first is not then and first.ts + first.duration_ms / 1000 <= then.ts + _SLACK_S
