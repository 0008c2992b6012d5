"""The faults of one trial: applied to its calls, and recorded in its ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.execute.trace_sink import AttemptKey, LiveSink
from holdfast.model.delivery import DeliveryPart
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.model.task import RecordedUse
from holdfast.model.trial import Trial
from holdfast.planes.injection.weather import Weather, normalize_target

if TYPE_CHECKING:
    from holdfast.protocols.fault import Call, Fits, Forward, Receives, Reply, Sleep

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
        for at in reversed(self._entries.get((fault.plane, fault.target, fault.call), ())):
            if self.ledger[at].index == fault.index:
                if fault.delayed and self.ledger[at].effect != "met":
                    return  # the client left while it waited
                self.ledger[at] = self._sink.make_storable(replace(fault, reply=self.ledger[at].reply))
                return

    def add_use(self, use: RecordedUse) -> None:
        from holdfast.planes.recorded_tools import USES_KEPT

        if not self._sink.closed and len(self.uses) < USES_KEPT:
            self.uses.append(self._sink.make_storable(use))

    def join_modes_met(self, plane: str, target: str, n: int) -> str:
        entries = (
            [self.ledger[at] for at in self._entries.get((plane, normalize_target(target), n), ())]
            if self.ledger
            else ()
        )
        return "+".join(dict.fromkeys(met.mode for met in entries if met.effect == "met"))

    def mark_undelivered(
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
        for at in self._entries.get((plane, normalize_target(target), n), ()):
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
        return self.has_faults and bool(self.weather.find_facing(plane, target))

    async def inject(
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
        # Until a fault passes the call on, the other side has not received it, and the trace must say so.
        held = (call.plane, normalize_target(call.target), call.n)
        self._sink.hold(held)
        return await self.weather.inject(
            call,
            forward,
            sleep,
            untouched=untouched,
            retry=retry,
            sent=partial(self._sink.release, held),
            fits=fits,
            receives=receives,
            names=names,
        )


def _is_unread(met: FaultMet, read: str) -> bool:
    """Whether it is an attack with none of its canaries in the text that was read."""
    return bool(met.canaries) and not any(canary in read for canary in met.canaries)
