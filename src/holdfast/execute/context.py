"""The context of one trial, alive: its weather, its ledger, its trace, and what they come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.codec import HALVES, carried, encodable
from holdfast.model.delivery import DeliveryPart
from holdfast.model.observation import Answer, FaultMet, Observation, Turn
from holdfast.model.scenario import Injection
from holdfast.model.shorten import shorten
from holdfast.model.spec import UsageLimits
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trace import EVENTS_KEPT, REFUSED, TraceEvent
from holdfast.model.trial import Trial
from holdfast.planes.describe import TARGET_KEPT, brief
from holdfast.planes.recorded_value import write_lost

if TYPE_CHECKING:
    from holdfast.execute.needed import Needed, Refusals
    from holdfast.execute.simulated_users import TalkingUser
    from holdfast.execute.usage_meter import UsageMeter
    from holdfast.planes.injection.weather import Weather
    from holdfast.protocols.fault import Call, Fits, Forward, Receives, Reply, Sleep
    from holdfast.protocols.trial import WorldFindings

Met = Callable[[Trial, FaultMet], None]
Saw = Callable[[Trial, TraceEvent], None]

S = TypeVar("S", bound=Struct)
R = TypeVar("R", TraceEvent, FaultMet)

NOTES_KEPT = 100
"""Notes and troubles of one trial that are kept."""
REPLIES_KEPT = 10_000_000
"""Characters of the replies of one trial that are kept for a replay, besides what its trace shows of them."""
_NOTE_SIZE = 1_000
_MORE = "and more"


class LiveContext:
    """A TrialContext that keeps all it is told: weather, ledger and trace."""

    def __init__(
        self,
        trial: Trial,
        on_fault: Met | None = None,
        on_call: Saw | None = None,
        limits: UsageLimits | None = None,
    ) -> None:
        self.trial = trial
        self.limit = ""
        self.on_limit: Callable[[], None] | None = None
        self._meter: UsageMeter | None = None
        if limits is not None:
            from holdfast.execute.usage_meter import UsageMeter

            self._meter = UsageMeter(limits, self.note)
        self.nearby: Mapping[tuple[str, int], tuple[str, int]] = {}
        self.watch: Callable[[str], None] | None = None
        self.user: TalkingUser | None = None
        """Who asks further when the written turns are over."""
        self.user_s = 0.0
        self.left: WorldFindings | None = None
        """What was found in the world after the agent had ended."""
        self.ledger: list[FaultMet] = []
        self._entries: dict[tuple[str, str, int], list[int]] = {}
        """Where in the ledger each call stands."""
        self.trace: list[TraceEvent] = []
        self._replies = 0
        self.recorded: list[RecordedUse] = []
        self.replayed = trial.task.recording is not UNSET
        self.troubles: list[str] = []
        self.notes: list[str] = []
        self.calls_made = ""
        """How far an agent that Holdfast ended had come."""
        self.closed = False
        """The observation is made: what a plane tells now is nobody's."""
        self._on_fault = on_fault
        self._on_call = on_call
        self._before = 0
        self._held: set[tuple[str, str, int]] = set()
        """Calls that faults may act on and that were not passed on yet."""
        self._began = perf_counter()
        self._weather: Weather | None = None
        self._needed: Needed | None = None
        self._refusals: Refusals | None = None
        self.stormy = bool(trial.scenario.injections)
        self.on_calls = self.stormy and trial.scenario.on_calls

    @property
    def concurrent(self) -> bool:
        """Whether calls overlapped, so that the order of faults may differ between runs."""
        return self._weather is not None and self._weather.concurrent

    @property
    def weather(self) -> Weather:
        """Made when first needed: most trials of a fast agent in calm never look."""
        if self._weather is None:
            from holdfast.planes.injection.weather import Weather

            self._weather = Weather(self.trial, self.met, self.amend, self.took)
        return self._weather

    @property
    def refusals(self) -> Refusals:
        """What egress refused; made when first needed, as the weather is."""
        if self._refusals is None:
            from holdfast.execute.needed import Refusals

            self._refusals = Refusals()
        return self._refusals

    @property
    def needed(self) -> Needed:
        """Who answered; made when first needed, as the weather is."""
        if self._needed is None:
            from holdfast.execute.needed import Needed

            self._needed = Needed()
        return self._needed

    def ask(self, turn: str) -> str:
        self._before = len(self.ledger) if self.ledger else 0
        return self.weather.rewrite(turn) if self.stormy else turn

    async def next_turn(self, task: Task, turns: Sequence[Turn]) -> str | None:
        if len(turns) < len(task.turns) and not self.limit:
            return task.turns[len(turns)]
        if self.limit or task.user is UNSET or len(turns) >= task.most_turns:
            return None
        if self.user is None:
            raise HarnessError("nobody plays the user of this task here")
        began = perf_counter()
        try:
            return await self.user.reply(task, turns)
        finally:
            self.user_s += perf_counter() - began

    def lost(self) -> None:
        for at in range(self._before, len(self.ledger)):
            self._unmeet(at, "")

    def _unmeet(self, at: int, why: str) -> None:
        """An entry was not met after all: it does not count for `times`."""
        met = self.ledger[at]
        if met.effect == "met":
            self.ledger[at] = replace(met, effect="no_effect", note=why or met.note)
            self.weather.give_back(met.index)

    def met(self, fault: FaultMet) -> None:
        if self.closed:
            return
        fault = self._storable(self._within(fault))
        self._entries.setdefault((fault.plane, fault.target, fault.call), []).append(len(self.ledger))
        self.ledger.append(fault)
        if self._on_fault is not None:
            self._on_fault(self.trial, fault)

    def amend(self, fault: FaultMet) -> None:
        if self.closed:
            return
        for at in reversed(self._entries.get((fault.plane, fault.target, fault.call), ())):
            if self.ledger[at].index == fault.index:
                self.ledger[at] = self._storable(replace(fault, reply=self.ledger[at].reply))
                return

    def took(self, use: RecordedUse) -> None:
        from holdfast.planes.recorded_tools import USES_KEPT

        if not self.closed and len(self.recorded) < USES_KEPT:
            self.recorded.append(self._storable(use))

    def saw(self, event: TraceEvent) -> None:
        if self.closed or (event.error_type == REFUSED and self.refusals.known(event, self.trace)):
            return
        if self._meter is not None and not self.limit:
            self._measure(event)
        if len(self.trace) >= EVENTS_KEPT:
            self.note(f"more than {EVENTS_KEPT} calls were seen; the rest is not in the trace")
            return
        event = self._storable(self._within(_short(event)))
        if self._held:
            event = self._released(event)
        self.trace.append(event)
        if self.watch is not None:
            self.watch(event.event_type)
        if self._on_call is not None and event.error_type != REFUSED:  # of those it is not known yet how often
            self._on_call(self.trial, event)

    @property
    def limited(self) -> bool:
        return self._meter is not None

    def _measure(self, event: TraceEvent) -> None:
        assert self._meter is not None
        self.limit = self._meter.passed(event, [*self.trace, event])
        if self.limit and self.on_limit is not None:
            self.on_limit()

    def turned_away(self, host: str, kind: str) -> None:
        if not self.closed:
            self.refusals.beside(host, kind)

    @property
    def side_calls(self) -> str:
        return "" if self._refusals is None else self._refusals.side_calls

    def unread_model(self, host: str, speaks: str, failed: str = "") -> None:
        if self.closed:
            return
        self.count("unread", f"{host} speaks {speaks}")
        if failed:
            self.refusals.models[f"{host} speaks {speaks}"] = failed
        else:
            self.note(f"{host} speaks {speaks}, which Holdfast does not read: no fault acts on its replies")

    def _released(self, event: TraceEvent) -> TraceEvent:
        """The event, marked if the call was never passed on."""
        target = event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool
        call = (event.plane, target, event.n)
        if call not in self._held:
            return event
        self._held.discard(call)
        return replace(event, unsent=True) if event.plane != "tool_result" else event

    def traced(self) -> Sequence[TraceEvent]:
        return sorted(self.trace, key=_when)

    def found(self, found: WorldFindings) -> None:
        self.left = found

    def seen(
        self,
        answer: Answer,
        error: str | None = None,
        *,
        attempts: int = 1,
        simulated: bool = False,
    ) -> Observation:
        """All that was seen; without an `error`, what has broken so far is one.

        Whatever text the agent sent, it can be stored from here on.
        """
        left = None if self.left is None else self._storable(self.left)
        answer = self._storable(answer)
        weather, now = self._weather, perf_counter()
        return Observation(
            trial=self.trial.id,
            turns=answer.turns,
            ledger=tuple(self.ledger),
            output=answer.output,
            notes=(*answer.notes, *(self._all_notes() if self.replayed or self._refusals is not None else self.notes)),
            calls=answer.calls if weather is None else answer.calls | weather.calls,
            concurrent=answer.concurrent or (weather is not None and weather.concurrent),
            unmatched=answer.unmatched if weather is None else answer.unmatched | weather.unmatched,
            at=round(time.time() - now + self._began, 6),
            trace=tuple(sorted(self.trace, key=_when)) if self.trace else (),
            evidence={} if left is None else left.evidence,
            audit=() if left is None else left.audit,
            isolation=() if left is None else left.isolation,
            forbidden=() if left is None else left.forbidden,
            missing_programs=() if left is None else left.missing_programs,
            recorded=tuple(self.recorded) if self.recorded else (),
            error=self._broken(answer) if error is None else error,
            attempts=attempts,
            duration_ms=(now - self._began) * 1000,
            simulated=simulated,
            calls_made=self.calls_made,
        )

    def _all_notes(self) -> Sequence[str]:
        notes = [*self.notes, self.side_calls] if self.side_calls else self.notes
        if not self.replayed:
            return notes
        from holdfast.planes.recorded_tools import replay_notes

        return [*notes, *replay_notes(self.trial.task, self.recorded)]

    def _broken(self, answer: Answer) -> str:
        """What of our side, or of a provider, has failed so far."""
        return "; ".join(dict.fromkeys((*self.troubles, *(self.unanswered(answer) if self.trace else ()))))

    def unanswered(self, answer: Answer) -> Iterable[str]:
        """Who the agent needed, and had no answer of, no fault being why."""
        from holdfast.execute.needed import silent

        yield from silent(answer, self.trace, self.needed)
        if self._refusals is not None:
            yield from self._refusals.without_model(self.trace)

    def _storable(self, value: S) -> S:
        """The value with text that can be stored; a note says where the agent's own could not."""
        found = carried(value)
        if found is not value:
            self.note(HALVES)
        return found

    def _within(self, seen: R) -> R:
        """The same, its reply left out where those of the trial are more than a session should hold."""
        if not seen.reply:
            return seen
        self._replies += len(seen.reply)
        return seen if self._replies <= REPLIES_KEPT else replace(seen, reply=write_lost("too-long"))

    def now(self) -> float:
        return perf_counter() - self._began

    def broke(self, why: str) -> None:
        _keep(self.troubles, why)

    def reached(self, at: str) -> None:
        self.needed.answered(at, self.now())

    def note(self, text: str) -> None:
        _keep(self.notes, text)

    def count(self, plane: str, target: str) -> int:
        return self.weather.count(plane, target)

    def activity(self) -> int:
        counted = sum(self._weather.calls.values()) if self._weather is not None else 0
        return len(self.trace) + len(self.ledger) + counted

    def met_by(self, plane: str, target: str, n: int) -> str:
        entries = [self.ledger[at] for at in self._entries.get((plane, brief(target), n), ())] if self.ledger else ()
        return "+".join(dict.fromkeys(met.mode for met in entries if met.effect == "met"))

    def undelivered(
        self,
        plane: str,
        target: str,
        n: int,
        why: str = "the client had left",
        *,
        injection: Injection | None = None,
        parts: Collection[DeliveryPart] = (),
        waits: bool = False,
        read: str | None = None,
    ) -> None:
        for at in self._entries.get((plane, brief(target), n), ()):
            met = self.ledger[at]
            meant = (injection is None or met.mode == injection.mode) and (read is None or _unread(met, read))
            meant = meant and (not parts or self.weather.traits(met.index).delivers in parts)
            if meant and met.effect == "met" and (waits or not met.delayed):
                self._unmeet(at, why)

    def overlapped(self) -> None:
        self.weather.concurrent = True

    def faces(self, plane: str, target: str) -> bool:
        if self.replayed and self.weather.recorded is not None and self.weather.recorded.minds(plane, target):
            return True
        return self.stormy and bool(self.weather.facing(plane, target))

    async def through(
        self,
        call: Call,
        forward: Forward,
        sleep: Sleep,
        *,
        untouched: Forward | None = None,
        retry: int = 0,
        fits: Fits | None = None,
        receives: Receives | None = None,
        names: Sequence[str] | None = None,
    ) -> Reply:
        held = (call.plane, brief(call.target), call.n)
        if len(self.trace) < EVENTS_KEPT:
            self._held.add(held)
        sent = partial(self._held.discard, held)
        return await self.weather.through(
            call,
            forward,
            sleep,
            untouched=untouched,
            retry=retry,
            sent=sent,
            fits=fits,
            receives=receives,
            names=names,
        )


def _unread(met: FaultMet, read: str) -> bool:
    """Whether it is an attack of which no canary stands there."""
    return bool(met.canaries) and not any(canary in read for canary in met.canaries)


def _short(event: TraceEvent) -> TraceEvent:
    """The event with a target of bounded size; canaries in what is left out of it are told."""
    if len(event.tool) <= TARGET_KEPT:
        return event
    method, space, url = event.tool.partition(" ") if event.event_type == "http_call" else ("", "", event.tool)
    from holdfast.model.canary import echoes

    found = dict.fromkeys((*event.canaries, *echoes(event.tool)))
    return replace(event, tool=f"{brief(method)}{space}{brief(url)}", canaries=tuple(found))


def _keep(texts: list[str], text: str) -> None:
    """Adds a text that is not there yet, while there is room."""
    text = encodable(shorten(text, _NOTE_SIZE))
    if len(texts) <= NOTES_KEPT and text not in texts:
        texts.append(text if len(texts) < NOTES_KEPT else _MORE)


def _when(event: TraceEvent) -> float:
    return event.ts
