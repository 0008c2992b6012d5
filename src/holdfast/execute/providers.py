"""The providers, servers and origins that the agent called: when each answered, and which calls egress refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.model.canary import echoes
from holdfast.model.observation import Answer, Turn
from holdfast.model.trace import TraceEvent

EACH_HOST = 20
"""Refused calls at one host that are listed one by one: different URLs, different bodies."""
HOSTS_NAMED = 10
"""Hosts of side calls that are named."""


class RefusedCalls:
    """The refused calls of one trial."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """Where in the trace each is."""
        self._at_host: Counter[str] = Counter()
        self._side_calls: Counter[tuple[str, str]] = Counter()
        self.models: dict[str, str] = {}
        """Places of models in formats that the gateway does not read, and why each gave no answer."""

    def known(self, event: TraceEvent, trace: list[TraceEvent]) -> bool:
        """Whether the trace has such a call already: then it is counted there. Else its place is the next."""
        host = urlsplit(event.tool.partition(" ")[2]).netloc
        key = f"{event.tool} {event.digest}"
        if key not in self._places and self._at_host[host] >= EACH_HOST:
            key = host
        at = self._places.setdefault(key, len(trace))
        if at >= len(trace):
            self._at_host[host] += 1
            return False
        before = trace[at]
        sent = dict.fromkeys((*before.canaries, *event.canaries, *echoes(f"{event.tool} {event.input}")))
        trace[at] = replace(before, times=before.times + 1, canaries=tuple(sent))
        return True

    def add_side_call(self, host: str, kind: str) -> None:
        """A call that is not part of the agent's work."""
        self._side_calls[host, kind] += 1

    @property
    def side_calls(self) -> str:
        """`also tried, and denied: 14 calls to o1.sentry.io (telemetry)`; empty if there was none."""
        named = [f"{_calls(n)} to {host} ({kind})" for (host, kind), n in self._side_calls.most_common(HOSTS_NAMED)]
        more = len(self._side_calls) - len(named)
        return f"also tried, and denied: {', '.join(named)}{f' and {more} more hosts' if more else ''}" if named else ""

    def without_model(self, trace: Iterable[TraceEvent]) -> Iterator[str]:
        """Why the agent had no model to ask, if that is so."""
        if self.models and not any(event.event_type == "llm_call" for event in trace):
            place, why = next(iter(self.models.items()))
            yield (
                f"{place}, which Holdfast does not read, and {why}; the agent asked no other model: set it up for an "
                "API key and one of the APIs that Holdfast speaks, or allow that host"
            )


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


KEPT = 1_000
"""An agent that makes up names does not fill our memory."""
SILENCE_MS = 10_000.0
"""Nobody calls a model slow that says its first word sooner."""
_SHORT_MS = 1_000.0
"""An agent that gives up sooner, and goes on, may have meant to: it asked two models at once, say."""


class Providers:
    """When each provider, server or origin last answered."""

    def __init__(self) -> None:
        self._answered: dict[str, float] = {}

    def answered(self, at: str, when: float) -> None:
        if at in self._answered or len(self._answered) < KEPT:
            self._answered[at] = when

    def has_answered_since(self, at: str, when: float) -> bool:
        """Whether they answered after that."""
        return self._answered.get(at, -1.0) > when


def silent(answer: Answer, trace: Iterable[TraceEvent], providers: Providers) -> Iterator[str]:
    """Errors that name each provider that was silent until the agent gave up, though no fault is why.

    All waits for one provider count together, because client libraries try again. A provider that answered after a
    wait had begun was not silent: the agent asked twice, and took the first answer.
    """
    waits: dict[str, tuple[float, str]] = {}
    for event in trace:
        if event.waited_ms and event.error_type == "client_gone" and not event.fault:
            at = place(event)
            if not providers.has_answered_since(at, event.ts):
                waits[at] = waits.get(at, (0.0, ""))[0] + event.waited_ms, event.tool
    turn = max(answer.turns, key=lambda turn: turn.latency_ms, default=None)
    for waited, what in waits.values():
        if turn is not None and _too_long(waited, turn):
            until = "until its time was up" if turn.ending == "timeout" else "and gave up"
            yield f"the agent waited {waited:.0f} ms for {what} {until}, and no fault caused it"


def place(event: TraceEvent) -> str:
    """Who was asked, as planes name them: the origin of a URL, a model."""
    if event.plane != "http":
        return f"{event.plane}:{event.tool}"
    url = urlsplit(event.tool.partition(" ")[2])
    return f"{url.scheme}://{url.netloc}"


def _too_long(waited_ms: float, turn: Turn) -> bool:
    """Longer than anybody's patience; or for most of the turn, unless that was a moment."""
    most = waited_ms >= turn.latency_ms / 2
    return waited_ms >= SILENCE_MS or (most and (turn.ending == "timeout" or waited_ms >= _SHORT_MS))
