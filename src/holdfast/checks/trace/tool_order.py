"""`tool_order`: tools were called in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.trace import calls
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class ToolOrder:
    """The agent called these tools in this order."""

    tools: Annotated[
        tuple[str, ...], about("Names, globs or URLs, in order.", min_length=2, examples=[["search", "send_mail"]])
    ]
    strict: Annotated[bool, about("Allow no other tool between them.")] = False

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="trace", texts=("target",), see=("invariants.only_after",)
    )
    codes: ClassVar[Mapping[str, str]] = {
        "order-broken": "The calls were not made in this order.",
        "order-kept": "The calls were made in this order.",
    }

    def configured(self) -> CheckTraits:
        return calls.add_call_traits(self.traits, **{f"tools[{n}]": tool for n, tool in enumerate(self.tools)})

    def decide(self, exhibit: Exhibit) -> Finding:
        steps = [e for e in calls.find_own_calls(exhibit.observation.trace) if self._is_step(e)]
        made, requested = calls.split_requested(steps)
        names = [calls.get_call_name(e) for e in made[: calls.LISTED]]
        order, details = " → ".join(names) or "none", {"order": names}
        missing = self._find_order_error(made)
        if (missing is None) != (self._find_order_error(steps) is None):
            why = shorten(f"called: {order}; {calls.describe_requested(requested)}", 220)
            return Finding(None, why, "calls-unseen", details=details)
        if missing is None:
            return Finding(True, shorten(f"called in this order: {order}", 200), "order-kept", details=details)
        return Finding(False, shorten(f"{missing}; called: {order}", 220), "order-broken", (missing,), details=details)

    def _is_step(self, event: TraceEvent) -> bool:
        """Return whether the event is a step: a tool call, or a request if the order lists URLs."""
        if event.event_type == "http_call":
            return any("://" in tool for tool in self.tools)
        return event.event_type != "llm_call"

    def _find_order_error(self, made: Sequence[TraceEvent]) -> str | None:
        """Return what is wrong with the order; empty if nothing is."""
        if self.strict:
            size = len(self.tools)
            windows = (made[at : at + size] for at in range(len(made) - size + 1))
            if any(all(map(calls.is_match, window, self.tools)) for window in windows):
                return None
            return f"{shorten(', '.join(self.tools))} were not called one right after the other"
        rest = iter(made)
        for at, tool in enumerate(self.tools):
            if not any(calls.is_match(event, tool) for event in rest):
                after = f" after {shorten(self.tools[at - 1], 40)}" if at else ""
                return f"{shorten(tool, 40)} was not called{after}"
        return None
