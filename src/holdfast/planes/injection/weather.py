"""Weather: the active injections of one trial. It decides when each fires and keeps the ledger.

A plane brings a call here and says how to forward it. The matching faults are wrapped around it, the first in the list
outermost. The ledger records a firing before the agent can observe it: before a delay begins, before a failure is
raised, before a changed reply is returned.

Counting a call, deciding and recording are one class, because they use the same counters under one lock: calls that
overlap must not fire a fault more often than `times` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import UNSET

from holdfast.errors import HarnessError
from holdfast.model.task import RecordedFiring, RecordedUse
from holdfast.model.trace import READ_METHODS
from holdfast.model.trial import Trial
from holdfast.planes.describe import digest_arguments, shorten_target
from holdfast.planes.injection.active_injection import STEP, ActiveInjection, RandomDraws
from holdfast.planes.injection.faulted_call import FaultedCall, drive
from holdfast.planes.injection.firing import Firing, skip_wait
from holdfast.planes.injection.ledger import Ledger, Record
from holdfast.planes.injection.outcome_comparison import CallEnd
from holdfast.planes.traced_call import CallTrace
from holdfast.protocols.fault import Call, FaultTraits, Fits, Forward, Receives, Reply, Sleep

if TYPE_CHECKING:
    from holdfast.planes.recorded_tools import RecordedTools

TARGETS_KEPT = 10_000
"""Limit on distinct targets and arguments per trial, to bound the memory if an agent invents URLs."""
OTHERS = "(others)"
"""The name under which calls to further targets are counted."""


class Weather:
    """All faults of one trial."""

    def __init__(
        self,
        trial: Trial,
        record: Record,
        amend: Record,
        on_use: Callable[[RecordedUse], None] = lambda use: None,
    ) -> None:
        """`on_use` receives the recorded reply that each call of a replayed trial got."""
        self.trial = trial
        self.recorded: RecordedTools | None = None
        """In a replayed trial, the recording that answers instead of the tools."""
        if trial.task.recording is not UNSET:
            from holdfast.planes.recorded_tools import RecordedTools

            self.recorded = RecordedTools(trial.task.recording, on_use)
        self.replays_functions = self.recorded is not None and self.recorded.can_answer("tool", "")
        self.ledger = Ledger(record, amend)
        self.calls: dict[str, int] = {}
        self.concurrent = False
        self.in_flight: list[None] = []
        """One entry per call in progress: a list can grow and shrink in several threads without a lock."""
        self.lock = Lock()
        """Guards the counters: calls may come from several threads."""
        self.on_error: Callable[[HarnessError], None] = lambda error: None
        """Called with each harness error; the agent continues."""
        self.call_trace: CallTrace | None = None
        """Receives the calls of the agent's own functions."""
        self._draws = RandomDraws(trial)
        self._fired = None if trial.task.recording is UNSET else trial.task.recording.fired
        self._active: tuple[ActiveInjection, ...] = ()
        self._occurrences: dict[str, int] = {}

    def get_traits(self, index: int) -> FaultTraits:
        """Return the traits of the fault that a ledger entry is about."""
        return self._list_active()[index].traits

    def return_firing(self, index: int) -> None:
        """Remove a firing that was not met from the count for `times`."""
        active = self._list_active()[index]
        with self.lock:
            active.used_firings -= 1

    def _list_active(self) -> tuple[ActiveInjection, ...]:
        """Return the injections with their counters. They are made at the first call, because a broken plug-in must
        fail a call and not the start of the agent."""
        with self.lock:  # one set of counters, even if several threads ask first
            injections = self.trial.scenario.injections
            self._active = self._active or tuple([ActiveInjection(i, one) for i, one in enumerate(injections)])
            return self._active

    def find_applicable(self, plane: str, target: str) -> list[ActiveInjection]:
        """Return the injections that can act on a call to this target, in list order."""
        return [active for active in self._list_active() if active.can_act_on(plane, target)]

    @property
    def unmatched(self) -> dict[int, str]:
        """For each injection whose `match` accepted no call: the arguments of the calls that it could have acted on."""
        return {active.index: active.unmatched for active in self._active if active.unmatched}

    def count(self, plane: str, target: str) -> int:
        """Count an attempt when it arrives and return its number, from 1."""
        target = shorten_target(target)
        key = target if plane in ("tool", "tool_result") else f"{plane}:{target}"
        with self.lock:
            if key not in self.calls and len(self.calls) >= TARGETS_KEPT:
                key = OTHERS
            n = self.calls[key] = self.calls.get(key, 0) + 1
        return n

    async def inject(
        self,
        call: Call,
        forward: Forward,
        sleep: Sleep,
        *,
        untouched: Forward | None = None,
        retry: int = 0,
        modes: dict[int, str] | None = None,
        sent: Callable[[], None] | None = None,
        fits: Fits | None = None,
        receives: Receives | None = None,
        names: Sequence[str] | None = None,
    ) -> Reply:
        """Forward the call through every fault that fires; use `untouched` if none fires or watches.

        In a replayed trial the recording answers. It finds the tool by one of `names`, or by the call's target. The
        modes of the faults that were met are added to `modes`, by index; `sent` is called when the call is forwarded.
        `fits` says whether the agent accepts a value; `receives` converts a reply to the form in which it arrives.
        """
        if self.recorded is not None and names != () and self.recorded.can_answer(call.plane, call.target):
            known_by = names or (call.target,)
            untouched = self.recorded.wrap_forward(untouched or forward, known_by, sleep, sent)
            forward, sent = self.recorded.wrap_forward(forward, known_by, sleep, sent), None
        applicable = self.find_applicable(call.plane, call.target)
        if not applicable:
            if sent is not None:
                sent()
            return await (untouched or forward)(call)
        faulted_call = FaultedCall(
            forward, untouched or forward, sleep, self.ledger, retry, modes, sent, fits, receives
        )
        return await self._apply_faults(call, applicable, faulted_call)

    async def _apply_faults(
        self, call: Call, applicable: Sequence[ActiveInjection], faulted_call: FaultedCall
    ) -> Reply:
        candidates = self._count_call(call, applicable, faulted_call.retry)
        faulted_call.needs_reply = any(active.watches for active, _, _ in candidates)
        try:
            reply = await self._run_chain(candidates, 0, call, faulted_call)
        except BaseException as raised:
            await self._settle(faulted_call, raised, call)
            raise
        await self._settle(faulted_call, reply, call)
        return reply

    async def _settle(self, faulted_call: FaultedCall, arrived: CallEnd, call: Call) -> None:
        """Decide which of the fired faults were met; the others do not count for `times`."""
        await faulted_call.settle(arrived, call)
        for firing in faulted_call.fired:
            if firing.effect != "met":
                self.return_firing(firing.index)

    def rewrite(self, text: str) -> str:
        """Return the prompt of a turn after the attacks on the agent's input."""
        applicable = self.find_applicable("context", "input")
        if not applicable:
            return text

        async def forward(call: Call) -> Reply:
            return Reply(text)

        # The first attack in the list rewrites first, so the last one is the outermost.
        call = Call("context", "input", {}, applicable[0].offered + 1)
        reply = drive(self._apply_faults(call, applicable[::-1], FaultedCall(forward, forward, skip_wait, self.ledger)))
        return str(reply.value)

    def _count_call(
        self, call: Call, applicable: Sequence[ActiveInjection], retry: int
    ) -> list[tuple[ActiveInjection, int, str]]:
        """Count the call for every injection whose `match` accepts it; return (injection, nth, key of the random
        draw) for each."""
        # Calls of models and services, and turns, come in the order of one conversation or connection, so their number
        # identifies them. Tools may be called concurrently: their draw depends on arguments and occurrence, which do
        # not depend on the order.
        numbered = call.plane in ("llm", "context") or call.plane.startswith("service")
        key = f"{shorten_target(call.target)}:{call.n if numbered else digest_arguments(call.arguments)}"
        candidates = []
        with self.lock:
            if not numbered:
                occurrence = self._occurrences.get(key, 0) + 1
                if occurrence > 1 or len(self._occurrences) < TARGETS_KEPT:
                    self._occurrences[key] = occurrence
                key = f"{key}:{occurrence}"
            for active in applicable:
                if active.matches(call.arguments):
                    # A retry that comes first belongs to a call that was made before the fault was placed.
                    # With `count: logical` the attempts of a client library at one call are one call. Only retries that
                    # the library itself announces count as such: a repetition by the agent is its own decision, and a
                    # new call.
                    if not (retry and active.offered and active.injection.schedule.count == "logical"):
                        active.offered += 1
                    # A transaction that never reaches the fault's step still counts.
                    # A fault at the commit of the third transaction means the third that begins, even if an earlier one
                    # never commits; so the transaction's own number decides, not how often this step was reached.
                    every = active.injection.schedule.match is None and call.plane.startswith(STEP)
                    nth = call.n if every else active.offered
                    if active.injection.schedule.after_event is not None:
                        active.writes += _is_write(call)
                        nth = active.writes if _is_write(call) else 0
                    candidates.append((active, nth, key))
        return candidates

    def _decide_firing(self, active: ActiveInjection, nth: int, key: str) -> bool:
        """Decide and count in one step, to enforce `times` when calls overlap."""
        with self.lock:
            if not active.is_due(nth) or not self._is_drawn(active, nth, key):
                return False
            active.fired += 1
            active.used_firings += 1
            return True

    def _is_drawn(self, active: ActiveInjection, nth: int, key: str) -> bool:
        """Return whether the random draw lets it fire; in a session made from a trial, whether it fired there."""
        probability = active.injection.schedule.probability
        if probability >= 1.0:
            return True
        if self._fired is None:
            return self._draws.draw_chance(active.index, key, probability)
        return RecordedFiring(active.index + 1, nth) in self._fired

    async def _run_chain(
        self, candidates: list[tuple[ActiveInjection, int, str]], at: int, call: Call, faulted_call: FaultedCall
    ) -> Reply:
        if at == len(candidates):
            return await faulted_call.pass_on(call)
        active, nth, key = candidates[at]

        async def onward(passed: Call) -> Reply:
            return await self._run_chain(candidates, at + 1, passed, faulted_call)

        if not self._decide_firing(active, nth, key):
            reply = await onward(call)
            active.watch(call, reply)
            return reply
        # The fault gets `forward` instead of `untouched` from here on: it must be able to read the reply.
        faulted_call.needs_reply = True
        create_rng = partial(self._draws.create_rng, active.index, key)
        firing = Firing(
            active, call, create_rng, nth, record=faulted_call.record, retry=faulted_call.retry, fits=faulted_call.fits
        )
        faulted_call.fired.append(firing)
        # Other faults may fire on this call, too. Which of them was met is then decided by replaying this firing, so
        # its memory is copied before the fault acts.
        if len(candidates) > 1:
            firing.keep_memory()
        return await firing.run(onward, faulted_call.sleep)


def _is_write(call: Call) -> bool:
    """Return whether the call may change something, as the trace has it: a call of a tool, a turn, or a request with
    an unsafe HTTP method.
    """
    if call.plane == "http":
        return call.arguments.get("method") not in READ_METHODS
    return call.plane in ("tool", "tool_result", "mcp", "context")
