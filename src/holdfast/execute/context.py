"""The context of a running trial, and the observation made from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.execute.trace_sink import AttemptKey, LiveSink, OnCall
from holdfast.model.codec import to_builtins
from holdfast.model.delivery import DeliveryPart
from holdfast.model.observation import Answer, FaultMet, Observation, Turn
from holdfast.model.scenario import Injection
from holdfast.model.spec import UsageLimits
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trial import Trial
from holdfast.planes.describe import shorten_target
from holdfast.planes.injection.weather import Weather

if TYPE_CHECKING:
    from holdfast.execute.simulated_users import ModelUser, ScriptedUser
    from holdfast.protocols.fault import Call, Forward, Reply, Sleep
    from holdfast.protocols.trial import WorldFindings

OnFault = Callable[[Trial, FaultMet], None]


class LiveInjector:
    """The Injector of a running trial."""

    def __init__(self, trial: Trial, sink: LiveSink, on_fault: OnFault | None = None) -> None:
        self._trial = trial
        self._sink = sink
        self._on_fault = on_fault
        self.has_faults = bool(trial.scenario.injections)
        self.is_replay = trial.task.recording is not UNSET
        self.weather = Weather(trial, self.add_fault, self.amend_fault, self.add_use)
        self.count = self.weather.count
        self.ledger: list[FaultMet] = []
        self._entries: dict[AttemptKey, list[int]] = {}
        """The positions in the ledger of each call's entries."""
        self.uses: list[RecordedUse] = []
        self._before_turn = 0
        """The length of the ledger before the last turn was rewritten."""

    def rewrite_turn(self, turn: str) -> str:
        self._before_turn = len(self.ledger)
        return self.weather.rewrite(turn) if self.has_faults else turn

    def drop_turn_attacks(self) -> None:
        for at in range(self._before_turn, len(self.ledger)):
            self._revert_entry(at, "")

    def _revert_entry(self, at: int, why: str) -> None:
        """Mark an entry as not met after all: it does not count for `times`."""
        met = self.ledger[at]
        if met.effect == "met":
            self.ledger[at] = replace(met, effect="no_effect", note=why or met.note)
            self.weather.return_firing(met.index)

    def add_fault(self, fault: FaultMet) -> None:
        sink = self._sink
        # A plane may report a fault when the observation is already complete: a late thread, or a client that stays
        # connected. It belongs to no trial then.
        if sink.closed:
            return
        fault = sink.make_storable(sink.limit_reply(fault))
        self._entries.setdefault((fault.plane, fault.target, fault.call), []).append(len(self.ledger))
        self.ledger.append(fault)
        if self._on_fault is not None:
            self._on_fault(self._trial, fault)

    def amend_fault(self, fault: FaultMet) -> None:
        if self._sink.closed:
            return
        # A call that is retried may have several entries of one injection; the outcome is that of the newest.
        for at in reversed(self._entries.get((fault.plane, fault.target, fault.call), ())):
            if self.ledger[at].index == fault.index:
                if fault.delayed and self.ledger[at].effect != "met":
                    return  # the client disconnected while it waited
                self.ledger[at] = self._sink.make_storable(replace(fault, reply=self.ledger[at].reply))
                return

    def add_use(self, use: RecordedUse) -> None:
        from holdfast.planes.recorded_tools import USES_KEPT

        if not self._sink.closed and len(self.uses) < USES_KEPT:
            self.uses.append(self._sink.make_storable(use))

    def join_modes_met(self, plane: str, target: str, n: int) -> str:
        entries = map(self.ledger.__getitem__, self._entries.get((plane, shorten_target(target), n), ()))
        return "+".join(dict.fromkeys(met.mode for met in entries if met.effect == "met"))

    def mark_undelivered(
        self,
        plane: str,
        target: str,
        n: int,
        why: str = "the client had disconnected",
        *,
        injection: Injection | None = None,
        parts: Collection[DeliveryPart] = (),
        waits: bool = False,
        read: str | None = None,
    ) -> None:
        for at in self._entries.get((plane, shorten_target(target), n), ()):
            met = self.ledger[at]
            meant = (injection is None or met.mode == injection.mode) and (read is None or _is_unread(met, read))
            meant = meant and (not parts or self.weather.get_traits(met.index).delivers in parts)
            if meant and met.effect == "met" and (waits or not met.delayed):
                self._revert_entry(at, why)

    def mark_concurrent(self) -> None:
        self.weather.concurrent = True

    def can_affect(self, plane: str, target: str) -> bool:
        recorded = self.weather.recorded
        if recorded is not None and recorded.can_answer(plane, target):
            return True
        return self.has_faults and bool(self.weather.find_applicable(plane, target))

    async def inject(self, call: Call, forward: Forward, sleep: Sleep, **options: Any) -> Reply:
        # Until a fault passes the call on, the other side has not received it, and the trace must say so.
        held = (call.plane, shorten_target(call.target), call.n)
        self._sink.hold(held)
        return await self.weather.inject(call, forward, sleep, sent=partial(self._sink.release, held), **options)


def _is_unread(met: FaultMet, read: str) -> bool:
    """Return whether it is an attack with none of its canaries in the text that was read."""
    return bool(met.canaries) and not any(canary in read for canary in met.canaries)


class LiveTurns:
    """The Turns of a running trial: the written ones, then those of a simulated user."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self.user: ScriptedUser | ModelUser | None = None
        """Who continues after the written turns."""
        self.user_s = 0.0
        self.is_restarted = False
        self.earlier: tuple[Turn, ...] = ()
        self._last = ""
        """The prompt that was asked last, if it is not the first."""

    def restart(self, turns: Sequence[Turn]) -> None:
        self.is_restarted = True
        self.earlier = tuple(turns[:-1])

    def choose_first(self, task: Task) -> str:
        return self._last or task.turns[0]

    async def choose_next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        text = await self._choose_next(task, (*self.earlier, *turns))
        self._last = text or self._last
        return text

    async def _choose_next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        limit = self._sink.limit
        if len(turns) < len(task.turns) and not limit:
            return task.turns[len(turns)]
        if limit or task.user is UNSET or len(turns) >= task.max_turns:
            return None
        if self.user is None:
            raise HarnessError("this task needs a simulated user, but none is available here", code="user-failed")
        began = perf_counter()
        try:
            return await self.user.reply(task, turns)
        finally:
            self.user_s += perf_counter() - began


class LiveContext:
    """The TrialContext of a running trial."""

    def __init__(
        self,
        trial: Trial,
        on_fault: OnFault | None = None,
        on_call: OnCall | None = None,
        limits: UsageLimits | None = None,
    ) -> None:
        self.trial = trial
        self.services: Mapping[tuple[str, int], tuple[str, int]] = {}
        self.findings: WorldFindings | None = None
        self.sink = LiveSink(trial, on_call, limits)
        self.turns = LiveTurns(self.sink)
        self.calls_made = ""
        """The progress of an agent that Holdfast stopped."""
        self._on_fault = on_fault
        self._injector: LiveInjector | None = None

    @property
    def injector(self) -> LiveInjector:
        """Created at first use: an inline trial in calm never uses it, and would take half as long again."""
        if self._injector is None:
            self._injector = LiveInjector(self.trial, self.sink, self._on_fault)
        return self._injector

    def observe(
        self, answer: Answer, error: str | None = None, code: str = "", *, attempts: int = 1, simulated: bool = False
    ) -> Observation:
        """Return the complete observation; without an `error`, the harness errors so far become one.

        From here on every text of the agent can be stored.
        """
        sink, injector = self.sink, self._injector
        findings = None if self.findings is None else sink.make_storable(self.findings)
        answer = sink.make_storable(answer)
        weather = None if injector is None else injector.weather
        took_s = perf_counter() - sink.began
        observation = Observation(
            trial=self.trial.id,
            turns=answer.turns,
            ledger=() if injector is None else tuple(injector.ledger),
            output=answer.output,
            notes=(*answer.notes, *sink.list_notes(), *self._list_replay_notes()),
            calls=self.count_calls(answer),
            concurrent=answer.concurrent or (weather is not None and weather.concurrent),
            unmatched=answer.unmatched if weather is None else answer.unmatched | weather.unmatched,
            at=round(time.time() - took_s, 6),
            trace=tuple(sink.events()) if sink.trace else (),
            evidence={} if findings is None else findings.evidence,
            audit=() if findings is None else findings.audit,
            isolation=() if findings is None else findings.isolation,
            forbidden=() if findings is None else findings.forbidden,
            missing_programs=() if findings is None else findings.missing_programs,
            recorded=() if injector is None else tuple(injector.uses),
            error="; ".join(dict.fromkeys((*sink.errors, *sink.find_unanswered(answer)))) if error is None else error,
            error_code=code or sink.error_code,
            attempts=attempts,
            duration_ms=took_s * 1000,
            simulated=simulated,
            calls_made=self.calls_made,
        )
        return self._add_exchanges(observation) if sink.exchanges else observation

    def _list_replay_notes(self) -> Sequence[str]:
        if self.trial.task.recording is UNSET:
            return ()
        from holdfast.planes.recorded_tools import write_replay_notes

        return write_replay_notes(self.trial.task, self.injector.uses)

    def _add_exchanges(self, observation: Observation) -> Observation:
        # Only the calm trials of hunts have exchanges; loading the codec of services would slow down every other run.
        from holdfast.planes.tcp.exchanges import hide_private_values

        exchanges = sorted((read() for read in self.sink.exchanges), key=lambda one: one.ts)
        return replace(observation, exchanges=hide_private_values(exchanges, to_builtins(observation)))

    def count_calls(self, answer: Answer) -> dict[str, int]:
        """Return the number of calls to each target, in the agent's process and at the planes."""
        calls = answer.calls if self._injector is None else answer.calls | self._injector.weather.calls
        return calls | self.sink.unread if self.sink.unread else calls

    def count_activity(self) -> int:
        injector = self._injector
        if injector is None:
            return len(self.sink.trace)
        return len(self.sink.trace) + len(injector.ledger) + sum(injector.weather.calls.values())
