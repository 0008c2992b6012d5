"""The reports of one trial while it runs: calls, blocked calls, silent providers, notes, harness errors and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from time import perf_counter
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.canary import find_echoes
from holdfast.model.codec import HALVES, make_encodable, make_storable
from holdfast.model.observation import FAULT_BROKEN, Answer, FaultMet, ServiceExchange, Turn
from holdfast.model.shorten import shorten
from holdfast.model.spec import UsageLimits
from holdfast.model.trace import EVENTS_KEPT, REFUSED, TraceEvent
from holdfast.model.trial import Trial
from holdfast.planes.describe import TARGET_KEPT, shorten_target
from holdfast.planes.recorded_value import write_lost
from holdfast.protocols.trial import EventWatcher
from holdfast.reading.words import format_plural

OnCall = Callable[[Trial, TraceEvent], None]

S = TypeVar("S", bound=Struct)
R = TypeVar("R", TraceEvent, FaultMet)

PROVIDERS_KEPT = 1_000
"""Limit for an agent that invents names: it bounds memory."""
NOTES_KEPT = 100
"""Notes and errors stored per trial."""
REPLIES_KEPT = 10_000_000
"""Characters of replies stored per trial for a replay, in addition to its trace."""
_NOTE_SIZE = 1_000
_MORE = "and more"
AttemptKey = tuple[str, str, int]
"""Plane, target, and the number of the call at the target."""


class LiveSink:
    """The TraceSink of a running trial."""

    def __init__(self, trial: Trial, on_call: OnCall | None = None, limits: UsageLimits | None = None) -> None:
        self._trial = trial
        self._on_call = on_call
        self.began = perf_counter()
        self.watcher: EventWatcher | None = None
        self.limit = ""
        self.on_limit: Callable[[], None] | None = None
        self._meter = None if limits is None else UsageMeter(limits, self.note)
        self.trace: list[TraceEvent] = []
        self.exchanges: list[Callable[[], ServiceExchange]] = []
        self.notes: list[str] = []
        self.errors: list[str] = []
        self.error_code = ""
        self.closed = False
        """The observation is complete: what a plane reports now belongs to no trial."""
        self.unread: dict[str, int] = {}
        """Models called in formats that Holdfast does not read, with counts."""
        self._replies = 0
        self._held: set[AttemptKey] = set()
        """Calls that faults may act on and that were not passed on yet."""
        self._answered: dict[str, float] = {}
        """The time of the last answer of each provider, server or origin."""
        self.refused = RefusedCalls()

    @property
    def has_limits(self) -> bool:
        return self._meter is not None

    def add(self, event: TraceEvent) -> None:
        if self.closed or (event.error_type == REFUSED and self.refused.merge_repeat(event, self.trace)):
            return
        if self._meter is not None and not self.limit:
            self.limit = self._meter.find_exceeded_limit(event, [*self.trace, event])
            if self.limit and self.on_limit is not None:
                self.on_limit()
        # The limits above count every call; only what is stored is bounded.
        if len(self.trace) >= EVENTS_KEPT:
            self.note(f"more than {EVENTS_KEPT} calls were seen; the rest is not in the trace")
            return
        event = self.make_storable(self.limit_reply(_shorten_target(event)))
        if self._held:
            event = self._mark_unsent(event)
        self.trace.append(event)
        if self.watcher is not None:
            self.watcher.handle_event(event.event_type, event.write and not event.unsent)
        if self._on_call is not None and event.error_type != REFUSED:  # how often a blocked call comes is not known yet
            self._on_call(self._trial, event)

    def hold(self, call: AttemptKey) -> None:
        """Record that faults may act on the call, which has not been passed on yet."""
        if len(self.trace) < EVENTS_KEPT:
            self._held.add(call)

    def release(self, call: AttemptKey) -> None:
        """Record that the call was passed on."""
        self._held.discard(call)

    def _mark_unsent(self, event: TraceEvent) -> TraceEvent:
        """Return the event, marked if the call was never passed on."""
        target = event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool
        call = (event.plane, target, event.n)
        if call not in self._held:
            return event
        self._held.discard(call)
        return replace(event, unsent=True) if event.plane != "tool_result" else event

    def count_side_call(self, host: str, kind: str) -> None:
        if not self.closed:
            self.refused.add_side_call(host, kind)

    @property
    def side_calls(self) -> str:
        return self.refused.side_calls

    def record_unread_model(self, host: str, speaks: str, failed: str = "") -> None:
        if self.closed:
            return
        place = f"{host} speaks {speaks}"
        target = f"unread:{shorten_target(place)}"
        self.unread[target] = self.unread.get(target, 0) + 1
        if failed:
            self.refused.models[place] = failed
        else:
            self.note(f"{place}, which Holdfast does not read: no fault acts on its replies")

    def events(self) -> Sequence[TraceEvent]:
        return sorted(self.trace, key=attrgetter("ts"))

    def find_unanswered(self, answer: Answer) -> Iterator[str]:
        """Yield errors for the parties that gave the agent no answer, without a fault causing it."""
        if self.trace:
            yield from find_silent_providers(answer, self.trace, self._answered)
            yield from self.refused.explain_missing_model(self.trace)

    def make_storable(self, value: S) -> S:
        """Return the value with text that can be stored; a note says if the agent's own could not."""
        stored = make_storable(value)
        if stored is not value:
            self.note(HALVES)
        return stored

    def limit_reply(self, entry: R) -> R:
        """Return the entry, without its reply if the trial's replies exceed what a session should store."""
        if not entry.reply:
            return entry
        self._replies += len(entry.reply)
        return entry if self._replies <= REPLIES_KEPT else replace(entry, reply=write_lost("too-long"))

    def now(self) -> float:
        return perf_counter() - self.began

    def add_error(self, why: str, code: str) -> None:
        _keep(self.errors, why)
        if not self.error_code or code == FAULT_BROKEN:  # a broken fault also decides whether a cell is proven
            self.error_code = code

    def mark_answered(self, at: str) -> None:
        if at in self._answered or len(self._answered) < PROVIDERS_KEPT:
            self._answered[at] = self.now()

    def note(self, text: str) -> None:
        _keep(self.notes, text)

    def list_notes(self) -> Sequence[str]:
        """Return the notes, and one with the number of calls that are not in the trace."""
        return [*self.notes, self.side_calls] if self.side_calls else self.notes


def _shorten_target(event: TraceEvent) -> TraceEvent:
    """Return the event with a target of bounded size; canaries in the rest of it are kept."""
    if len(event.tool) <= TARGET_KEPT:
        return event
    method, space, url = event.tool.partition(" ") if event.event_type == "http_call" else ("", "", event.tool)
    canaries = dict.fromkeys((*event.canaries, *find_echoes(event.tool)))
    return replace(event, tool=f"{shorten_target(method)}{space}{shorten_target(url)}", canaries=tuple(canaries))


def _keep(texts: list[str], text: str) -> None:
    """Add a new text while there is room."""
    text = make_encodable(shorten(text, _NOTE_SIZE))
    if len(texts) <= NOTES_KEPT and text not in texts:
        texts.append(text if len(texts) < NOTES_KEPT else _MORE)


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
            self._usd += event.cost.estimated_usd or 0.0
            if event.cost.estimated_usd is None and self._limits.cost is not None:
                name = event.cost.model or event.tool
                self._note(f"agent.limits.cost: the price of {name} is unknown, so it is not counted")
        limits = self._limits
        if limits.calls is not None and self._events > limits.calls and self._count_calls(trace) > limits.calls:
            return f"more than {limits.calls:,} calls (agent.limits.calls)"
        if limits.tokens is not None and self._tokens > limits.tokens:
            return f"{self._tokens:,} tokens, more than {limits.tokens:,} (agent.limits.tokens)"
        if limits.cost is not None and self._usd > limits.cost:
            return f"about ${self._usd:.6g}, more than ${limits.cost:g} (agent.limits.cost)"
        return ""

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
