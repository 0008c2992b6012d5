"""Who an agent needed in a trial, and whether they answered: a model's server, a host or an MCP server of the spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from holdfast.model.observation import Answer, Turn
from holdfast.model.trace import TraceEvent

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
