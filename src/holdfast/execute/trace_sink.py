"""The reports of one trial while it runs: its calls, notes, harness errors and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from time import perf_counter
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.execute.providers import RefusedCalls, find_silent_providers
from holdfast.model.canary import find_echoes
from holdfast.model.codec import HALVES, make_encodable, make_storable
from holdfast.model.observation import FAULT_BROKEN, Answer, FaultMet, ServiceExchange
from holdfast.model.shorten import shorten
from holdfast.model.spec import UsageLimits
from holdfast.model.trace import EVENTS_KEPT, REFUSED, TraceEvent
from holdfast.model.trial import Trial
from holdfast.planes.describe import TARGET_KEPT, shorten_target
from holdfast.planes.recorded_value import write_lost

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
        self.watch: Callable[[str, bool], None] | None = None
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
        if self.watch is not None:
            self.watch(event.event_type, event.write and not event.unsent)
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
