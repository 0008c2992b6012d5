"""The providers, servers and origins that the agent called: when each answered, and what egress rules blocked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.model.canary import find_echoes
from holdfast.model.observation import Answer, Turn
from holdfast.model.trace import TraceEvent
from holdfast.reading.words import format_plural

CALLS_PER_HOST = 20
"""Blocked calls listed one by one per host: different URLs, different bodies."""
HOSTS_NAMED = 10
"""Hosts of side calls that are named."""


class RefusedCalls:
    """The blocked calls of one trial."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """The position of each in the trace."""
        self._at_host: dict[str, int] = {}
        self._side_calls: dict[tuple[str, str], int] = {}
        self.models: dict[str, str] = {}
        """Model hosts whose format the gateway does not read, and why each gave no answer."""

    def merge_repeat(self, event: TraceEvent, trace: list[TraceEvent]) -> bool:
        """Count the call in an equal one of the trace; return False if there is none, and reserve its position."""
        host = urlsplit(event.tool.partition(" ")[2]).netloc
        # Equal calls are one entry with a count, and from some number on all calls to one host are. An agent that
        # retries a blocked call forever must not fill the trace.
        key = f"{event.tool} {event.digest}"
        if key not in self._places and self._at_host.get(host, 0) >= CALLS_PER_HOST:
            key = host
        at = self._places.setdefault(key, len(trace))
        if at >= len(trace):
            self._at_host[host] = self._at_host.get(host, 0) + 1
            return False
        before = trace[at]
        sent = dict.fromkeys((*before.canaries, *event.canaries, *find_echoes(f"{event.tool} {event.input}")))
        trace[at] = replace(before, times=before.times + 1, canaries=tuple(sent))
        return True

    def add_side_call(self, host: str, kind: str) -> None:
        """Add a call that is not part of the agent's work."""
        self._side_calls[host, kind] = self._side_calls.get((host, kind), 0) + 1

    @property
    def side_calls(self) -> str:
        """`also tried, and denied: 14 calls to o1.sentry.io (telemetry)`; empty if there was none."""
        if not self._side_calls:
            return ""
        most_first = sorted(self._side_calls.items(), key=lambda side_call: -side_call[1])
        listed = [f"{format_plural(n, 'call')} to {host} ({kind})" for (host, kind), n in most_first[:HOSTS_NAMED]]
        more = f" and {len(most_first) - HOSTS_NAMED} more hosts" if len(most_first) > HOSTS_NAMED else ""
        return f"also tried, and denied: {', '.join(listed)}{more}"

    def explain_missing_model(self, trace: Iterable[TraceEvent]) -> Iterator[str]:
        """Yield a message if the agent had no model that it could call."""
        if self.models and not any(event.event_type == "llm_call" for event in trace):
            place, why = next(iter(self.models.items()))
            yield (
                f"{place}, which Holdfast does not read, and {why}; the agent called no other model: set it up for an "
                "API key and one of the APIs that Holdfast supports, or allow that host"
            )


SILENCE_MS = 10_000.0
"""A model that answers sooner is not slow."""
_SHORT_MS = 1_000.0
"""An agent that gives up sooner and continues may have meant to: it may have asked two models in parallel."""


def find_silent_providers(answer: Answer, trace: Iterable[TraceEvent], answered: Mapping[str, float]) -> Iterator[str]:
    """Yield errors for each provider that was silent until the agent gave up, without a fault causing it.

    `answered` has the time of the last answer of each.

    All waits for one provider add up, because client libraries retry. A provider that answered after a wait had begun
    was not silent: the agent asked twice, and took the first answer.
    """
    waits: dict[str, tuple[float, str]] = {}
    for event in trace:
        if event.waited_ms and event.error_type == "client_gone" and not event.fault:
            at = name_provider(event)
            if answered.get(at, -1.0) <= event.ts:
                waits[at] = waits.get(at, (0.0, ""))[0] + event.waited_ms, event.tool
    turn = max(answer.turns, key=lambda turn: turn.latency_ms, default=None)
    for waited, target in waits.values():
        if turn is not None and _is_too_long(waited, turn):
            until = "until its time was up" if turn.ending == "timeout" else "and gave up"
            yield f"the agent waited {waited:.0f} ms for {target} {until}, and no fault caused it"


def name_provider(event: TraceEvent) -> str:
    """Return the called party, in the planes' terms: the origin of a URL, or a model."""
    if event.plane != "http":
        return f"{event.plane}:{event.tool}"
    url = urlsplit(event.tool.partition(" ")[2])
    return f"{url.scheme}://{url.netloc}"


def _is_too_long(waited_ms: float, turn: Turn) -> bool:
    """Return whether the wait was very long, or most of a turn that was not short."""
    most = waited_ms >= turn.latency_ms / 2
    return waited_ms >= SILENCE_MS or (most and (turn.ending == "timeout" or waited_ms >= _SHORT_MS))
