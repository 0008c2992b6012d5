"""Compares a trial's usage with its limits: calls, tokens, money."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.model.spec import UsageLimits
from holdfast.model.trace import EVENTS_KEPT, TraceEvent


class UsageMeter:
    """Receives every call of one trial as it ends."""

    def __init__(self, limits: UsageLimits, note: Callable[[str], None]) -> None:
        self._limits = limits
        self._note = note
        self._events = self._tokens = 0
        self._usd = 0.0

    def find_exceeded_limit(self, event: TraceEvent, trace: Sequence[TraceEvent]) -> str:
        """Describe the limit that the call exceeded; empty if none. `trace` are the calls so far, with this one."""
        self._events += event.phase != "declared" and not event.retry
        if event.cost is not None:
            self._tokens += event.cost.input_tokens + event.cost.output_tokens
            self._add_cost(event)
        limits = self._limits
        if limits.calls is not None and self._events > limits.calls and self._count_calls(trace) > limits.calls:
            return f"more than {limits.calls:,} calls (agent.limits.calls)"
        if limits.tokens is not None and self._tokens > limits.tokens:
            return f"{self._tokens:,} tokens, more than {limits.tokens:,} (agent.limits.tokens)"
        if limits.cost is not None and self._usd > limits.cost:
            return f"about ${self._usd:.6g}, more than ${limits.cost:g} (agent.limits.cost)"
        return ""

    def _add_cost(self, event: TraceEvent) -> None:
        assert event.cost is not None
        usd = event.cost.estimated_usd
        self._usd += usd or 0.0
        if usd is None and self._limits.cost is not None:
            self._note(
                f"agent.limits.cost: the price of {event.cost.model or event.tool} is unknown, so it is not counted"
            )

    def _count_calls(self, trace: Sequence[TraceEvent]) -> int:
        """Return the number of calls, counting a call once even if several planes reported it."""
        if len(trace) >= EVENTS_KEPT:
            return self._events
        from holdfast.checks.trace.calls import (  # only if there may be too many
            find_calls,
            find_outermost_calls,
            split_requested,
        )

        made, _ = split_requested(find_outermost_calls(find_calls(trace)))
        return sum(not event.retry for event in made)
