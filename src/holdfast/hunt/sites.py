"""The call sites of a trial: where a fault can act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from holdfast.model.judged import CallSite
from holdfast.model.observation import Observation
from holdfast.model.trace import REFUSED, TraceEvent

SERVICE_PLANES = ("service", "transaction")
"""Where a service's connections and a database's transactions are counted."""
MODEL = "*"
"""The target of every model call: a fault of models counts the calls to all of them."""


def list_trial_sites(observation: Observation) -> tuple[CallSite, ...]:
    """Return the call sites of a trial: those of services, then the traced calls in the order in which they began."""
    return (*list_service_sites(observation), *(site for _, site in number_logical_calls(observation.trace)))


def list_service_sites(observation: Observation) -> Iterator[CallSite]:
    """Yield the connections and transactions of services, which are counted and not traced."""
    for counted, times in sorted(observation.calls.items()):
        plane, _, name = counted.partition(":")
        if plane in SERVICE_PLANES:
            yield from (CallSite(plane, name, n) for n in range(1, times + 1))


def number_logical_calls(trace: Iterable[TraceEvent]) -> list[tuple[list[TraceEvent], CallSite]]:
    """Return the agent's own calls, numbered for each target: the first attempt and the client's retries, and the
    site.

    Calls that were only declared, or that egress refused, are not among them.
    """
    calls: list[tuple[list[TraceEvent], CallSite]] = []
    ordinals = Counter[tuple[str, str]]()
    last: dict[tuple[str, str], list[TraceEvent]] = {}
    for event in trace:
        if event.phase == "declared" or event.error_type == REFUSED:
            continue
        key = event.plane, get_fault_target(event)
        if not event.retry:
            ordinals[key] += 1
            last[key] = [event]
            calls.append((last[key], CallSite(*key, ordinals[key])))
        elif key in last:
            last[key].append(event)
    return calls


def get_fault_target(event: TraceEvent) -> str:
    """Return the target at which faults wait for the call: an HTTP call is traced as `METHOD URL`, and its faults wait
    at the URL.
    """
    if event.event_type == "http_call":
        return event.tool.partition(" ")[2].partition("?")[0]
    return MODEL if event.plane == "llm" else event.tool
