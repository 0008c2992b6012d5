"""The agent's calls as checks see them: each once, though it may have been seen on several planes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta

from holdfast.checks.wording import shorten
from holdfast.model.trace import TraceEvent
from holdfast.planes.urls import url_matches

Glob = Annotated[str, Meta(min_length=1)]
"""What names calls in a setting: a tool, a glob, or a URL with `://`."""

NOT_REACHED = frozenset(
    {"auth_expired", "dns_failure", "down", "error", "flapping", "partition", "phantom_success", "rate_limit",
     "reset_peer", "session_lost", "timeout", "tls_error"}
)  # fmt: skip
"""Faults that answer in the other side's place: it never heard of the call."""
UNCERTAIN = frozenset({"crash_mid_call", "hang"})
"""Faults behind which the other side may or may not have done its work."""
HARMLESS = frozenset(
    {"bandwidth", "indirect_injection", "latency", "odd_chunks", "slicer", "slow", "slow_close", "slow_tokens"}
)
"""Faults that only change how a reply comes, or add to it: a call that met these alone has got what it wanted."""

LISTED = 20
"""Calls that are listed as evidence."""

_OF_TOOLS = ("tool_call", "mcp_call")
_NEAREST = ("tool", "mcp", "tool_result")
"""Planes on which one call of a tool may be seen, the one that sees most first."""


def calls(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Every call once. A tool that was seen at work is not counted by its traces in model traffic, too."""
    events = list(trace)
    nearest: dict[str, int] = {}
    for event in events:
        if event.event_type in _OF_TOOLS and event.phase != "declared":
            nearest[event.tool] = min(nearest.get(event.tool, len(_NEAREST)), _rank(event))
    return _undeclared([e for e in events if e.tool not in nearest or _nearest(e, nearest[e.tool])])


def own(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """The agent's own calls: without the repetitions that a client library makes."""
    return [event for event in calls(trace) if not event.retry]


def matches(event: TraceEvent, glob: str) -> bool:
    """Whether a glob means this call: a tool by its name; with `://` in it, a request by its URL or `METHOD URL`."""
    if "://" not in glob:
        return event.event_type in _OF_TOOLS and fnmatchcase(event.tool, glob)
    if event.event_type != "http_call":
        return False
    url = event.tool.partition(" ")[2]
    method, _, wanted = glob.rpartition(" ")
    try:
        return fnmatchcase(event.tool.partition(" ")[0], method or "*") and url_matches(wanted, url)
    except ValueError:  # an agent may ask for what is no URL at all
        return False


def modes(event: TraceEvent) -> frozenset[str]:
    """The faults that it met."""
    return frozenset(event.fault.split("+")) if event.fault else frozenset()


def done(event: TraceEvent) -> bool | None:
    """Whether the other side did what was asked; None where that cannot be told."""
    met = modes(event)
    if event.phase != "done":
        return None
    if event.plane == "tool_result":
        return True  # the tool has run: a fault changed what the model was told of it
    if met & NOT_REACHED:
        return False
    if met & UNCERTAIN:
        return None
    if met:
        return True
    if event.status is not None and 400 <= event.status < 500:
        return False
    return None if event.failed else True


def named(event: TraceEvent) -> str:
    """The call's target for a sentence."""
    return shorten(event.tool or event.event_type)


def times(count: int, noun: str = "time") -> str:
    """`1 time`, `2 times`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _nearest(event: TraceEvent, rank: int) -> bool:
    return event.event_type not in _OF_TOOLS or event.phase == "declared" or _rank(event) == rank


def _rank(event: TraceEvent) -> int:
    return _NEAREST.index(event.plane) if event.plane in _NEAREST else len(_NEAREST)


def _undeclared(events: list[TraceEvent]) -> list[TraceEvent]:
    """Without the calls that a model asked for and that were then seen being made."""
    made = Counter(e.tool for e in events if e.event_type in _OF_TOOLS and e.phase != "declared")
    kept = []
    for event in events:
        if event.phase == "declared" and made[event.tool] > 0:
            made[event.tool] -= 1
        else:
            kept.append(event)
    return kept
