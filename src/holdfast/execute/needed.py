"""Whom the agent needed and who answered, and whom egress refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.model.canary import echoes
from holdfast.model.observation import Answer, Turn
from holdfast.model.trace import TraceEvent

EACH_HOST = 20
"""Refused calls at one host that are told one by one: different URLs, different bodies."""
HOSTS_NAMED = 10
"""Hosts beside the agent's work that are named."""


class Refusals:
    """The refused calls of one trial."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """Where in the trace each stands."""
        self._at_host: Counter[str] = Counter()
        self._beside: Counter[tuple[str, str]] = Counter()
        self.models: dict[str, str] = {}
        """Places of models in formats that the gateway does not read, and why each gave no answer."""

    def known(self, event: TraceEvent, trace: list[TraceEvent]) -> bool:
        """Whether such a call stands in the trace already: then it is counted there. Else its place is the next."""
        host = urlsplit(event.tool.partition(" ")[2]).netloc
        key = f"{event.tool} {event.digest}"
        if key not in self._places and self._at_host[host] >= EACH_HOST:
            key = host
        at = self._places.setdefault(key, len(trace))
        if at >= len(trace):
            self._at_host[host] += 1
            return False
        told = trace[at]
        sent = dict.fromkeys((*told.canaries, *event.canaries, *echoes(f"{event.tool} {event.input}")))
        trace[at] = replace(told, times=told.times + 1, canaries=tuple(sent))
        return True

    def beside(self, host: str, kind: str) -> None:
        """A call that was none of the agent's work."""
        self._beside[host, kind] += 1

    @property
    def side_calls(self) -> str:
        """`also tried, and denied: 14 calls to o1.sentry.io (telemetry)`; empty if there was none."""
        told = [f"{_calls(n)} to {host} ({kind})" for (host, kind), n in self._beside.most_common(HOSTS_NAMED)]
        more = len(self._beside) - len(told)
        return f"also tried, and denied: {', '.join(told)}{f' and {more} more hosts' if more else ''}" if told else ""

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


class Needed:
    """When each of them last answered."""

    def __init__(self) -> None:
        self._answered: dict[str, float] = {}

    def answered(self, at: str, when: float) -> None:
        if at in self._answered or len(self._answered) < KEPT:
            self._answered[at] = when

    def since(self, at: str, when: float) -> bool:
        """Whether they answered after that."""
        return self._answered.get(at, -1.0) > when


def silent(answer: Answer, trace: Iterable[TraceEvent], needed: Needed) -> Iterator[str]:
    """Who said nothing for so long that the agent left, no fault being why, in words.

    All waits for one count together, as client libraries try again. Who answered after a wait had begun was not
    silent: the agent asked twice, and took the first answer.
    """
    waits: dict[str, tuple[float, str]] = {}
    for event in trace:
        if event.waited_ms and event.error_type == "client_gone" and not event.fault:
            at = place(event)
            if not needed.since(at, event.ts):
                waits[at] = waits.get(at, (0.0, ""))[0] + event.waited_ms, event.tool
    turn = max(answer.turns, key=lambda turn: turn.latency_ms, default=None)
    for waited, what in waits.values():
        if turn is not None and _too_long(waited, turn):
            until = "until its time was up" if turn.ending == "timeout" else "and gave up"
            yield f"the agent waited {waited:.0f} ms for {what} {until}, and no fault is why"


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
