"""One firing of a fault on one call: the ledger records it before the agent can observe its effect."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from holdfast.errors import HarnessError, format_error_place
from holdfast.model.canary import MARK, find_canaries
from holdfast.model.completion import Completion
from holdfast.model.delivery import AS_IT_IS
from holdfast.model.observation import FaultMet
from holdfast.planes.describe import describe, format_exception, is_same_value, render_value, shorten_target
from holdfast.planes.injection.active_injection import STEP, ActiveInjection
from holdfast.planes.injection.outcome_comparison import (
    CallEnd,
    are_values_alike,
    describe_change,
    describe_failure,
    has_arrived,
)
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call, Failed, FaultContext, Fits, Forward, Reply, Sleep

_NO_VALUE = object()
_OF_FUNCTIONS = ("tool", "llm")
"""Planes whose calls appear in the ledger under the fault's own plane; for others the ledger names the call's plane."""
TOOL_PLANES = ("tool", "tool_result", "mcp", "http")
"""Planes on which tool calls are observed: their replies are kept for a replay."""
_SHOWS = "its effect is visible in what arrived"
_RAN = "the tool ran; only the result sent to the model was replaced"


class RecordFiring(Protocol):
    """Enters a firing into the ledger, or with `amends` its outcome."""

    def __call__(self, met: FaultMet, *, amends: bool) -> None: ...


class Firing:
    """A firing in progress: what would have arrived, who raised an exception, whether the ledger has the firing."""

    def __init__(
        self,
        active: ActiveInjection,
        call: Call,
        create_rng: Callable[[], Random],
        nth: int,
        *,
        record: RecordFiring,
        retry: int,
        fits: Fits | None,
    ) -> None:
        """`create_rng` returns the same random state each time; `record` enters the firing into the ledger."""
        self.index = active.index
        self.injection = active.injection
        self._active = active
        self._number = active.fired
        self._create_rng = create_rng
        self._memory: dict[str, Any] = {}
        """The fault's memory as it was before it acted, if it may be replayed."""
        self._nth = nth if self.injection.schedule.probability < 1.0 else 0
        self._call = call
        self._record_firing = record
        self._retry = retry
        self._fits = fits
        self._expected = "the tool's result" if call.plane == "tool_result" else "not asked"
        self._value: Any = _NO_VALUE
        self._original: Reply | None = None
        self._text_before = ""
        self._reply = ""
        self._passing_exception: BaseException | None = None
        self._entry: FaultMet | None = None
        self._planted = ""
        self.was_forwarded = False
        """Whether the fault forwarded the call."""
        self.outcome: CallEnd | None = None
        """The reply or failure, once the firing has ended."""

    @property
    def effect(self) -> Literal["met", "no_effect", "erased"]:
        """The effect recorded in the ledger so far."""
        return "no_effect" if self._entry is None else self._entry.effect

    @property
    def is_delayed(self) -> bool:
        """Whether it delayed the caller, whatever happened afterwards."""
        return self._entry is not None and self._entry.delayed

    def keep_memory(self) -> None:
        """Keep the fault's memory, so that it can be replayed. Call it before `run`."""
        self._memory = _copy_memory(self._active.memory)

    async def run(self, onward: Forward, sleep: Sleep) -> Reply:
        """Return the fault's reply or raise its failure. Exceptions of the tool or the agent pass unchanged."""

        async def forward(call: Call) -> Reply:
            return await self._forward(onward, call)

        async def wait(ms: float) -> None:
            await self._wait(sleep, ms, ctx.waiting)

        ctx = self._create_context(wait, self._active.memory)
        try:
            reply = await self._active.fault.apply(self._call, forward, ctx)
        except BaseException as raised:
            self._handle_failure(raised)
            raise
        if not isinstance(reply, Reply):
            raise self._build_error(f"it returned {type(reply).__name__}, not a Reply")
        # Only now is it known what the fault returned. The entry is written before the reply goes on, so that an agent
        # that crashes on the reply cannot erase the evidence that the fault was met.
        original = self._original
        # the fault made a new reply from its value: keep the rest of the original
        if original is not None and reply is not original:
            delivery = original.delivery if reply.delivery is AS_IT_IS else reply.delivery
            reply = replace(original, value=reply.value, delivery=delivery)
        self.outcome, self._planted = reply, ctx.planted
        self._record(reply, original, ctx.idle)
        return reply

    async def replay(self, call: Call, onward: Forward) -> Reply:
        """Apply the fault to the reply of `onward` again, with the same random state, number and memory.

        That does not affect the call, and takes no time. Raises what the fault raises.
        """
        delivery = AS_IT_IS

        async def forward(passed: Call) -> Reply:
            nonlocal delivery
            reply = await onward(passed)
            delivery = reply.delivery
            return reply

        ctx = self._create_context(skip_wait, _copy_memory(self._memory))
        try:
            reply = await self._active.fault.apply(call, forward, ctx)
        except Failed as failed:
            failed.injection = failed.injection or self.injection
            raise
        return Reply(reply.value, delivery) if reply.delivery is AS_IT_IS else reply

    def _create_context(self, wait: Sleep, memory: dict[str, Any]) -> FaultContext:
        ctx = FaultContext(self._create_rng(), wait, self._number, memory)
        if self._fits is not None:
            ctx.fits = self._fits
        return ctx

    def _record(self, reply: Reply, original: Reply | None, idle: str) -> None:
        """Record in the ledger whether the reply differs from the `original`; `idle` says why it may not."""
        resent = reply.delivery != (AS_IT_IS if original is None else original.delivery)
        unchanged = not resent and self._is_unchanged(reply.value)
        got = str(reply.delivery) if resent else describe(reply.value)
        why = idle if unchanged else ""
        change = "" if unchanged or resent or original is None else describe_change(self._value, reply.value)
        planted = self._find_new_canaries(reply.value)
        self._add_entry("no_effect" if unchanged else "met", got, canaries=planted, why=why, change=change)

    def mark_erased(self, why: str) -> None:
        """Record that nothing of its effect arrived: if it had changed something, another fault erased that."""
        if self._entry is not None and self._entry.effect == "met":
            self._amend_entry(
                replace(self._entry, effect="erased", note=_join_notes(self._entry.note, why), canaries=())
            )

    def mark_met(self) -> None:
        """Mark it as met although its own reply showed no change: another fault had the same effect, or hid it."""
        if self._entry is not None and self._entry.effect != "met":
            self._amend_entry(replace(self._entry, effect="met", note=_SHOWS))

    def has_left_trace(self, text: str) -> bool:
        """Return whether part of its planted text arrived; true for a fault that plants nothing."""
        return not self._planted or has_arrived(self._planted, text)

    def keep_arrived_canaries(self, text: str) -> None:
        """Keep only the canaries that arrived."""
        entry = self._entry
        if entry is not None and entry.canaries:
            arrived = tuple(word for word in entry.canaries if word in text)
            if arrived != entry.canaries:
                self._amend_entry(replace(entry, canaries=arrived))

    def _amend_entry(self, entry: FaultMet) -> None:
        self._entry = entry
        self._record_firing(entry, amends=True)

    async def _forward(self, onward: Forward, call: Call) -> Reply:
        self.was_forwarded = True
        try:
            reply = await onward(call)
        except BaseException as raised:  # the tool's own failure, or that of an inner fault
            self._passing_exception, self._expected = raised, _describe_exception(raised)
            raise
        self._original, self._value, self._expected = reply, reply.value, describe(reply.value)
        if not isinstance(reply.value, Completion):  # a fault may change the value in place
            self._text_before = render_value(reply.value)
        if self._call.plane in TOOL_PLANES:
            self._reply = write_reply(reply.value)
        return reply

    async def _wait(self, sleep: Sleep, ms: float, what: str) -> None:
        # A delay counts from its first moment, because the caller is waiting; so the ledger has it before the sleep.
        if ms > 0:
            would = "" if self._value is _NO_VALUE else self._expected
            self._add_entry("met", f"{what} of {ms:g} ms", would=would, delayed=True)
        try:
            await sleep(ms)
        except BaseException as raised:  # the agent stopped waiting: its own timeout, a cancelled task
            self._passing_exception = raised
            raise

    def _handle_failure(self, raised: BaseException) -> None:
        """Decide who raised an exception; raise HarnessError if the fault has a bug."""
        self.outcome = raised
        # Three parties can raise here: the tool, an inner fault or the agent's own timeout (all `_theirs`); this
        # fault, on purpose (Failed); and this fault by a bug. Identity decides, because the types can be the same.
        if raised is self._passing_exception:
            self._add_entry("no_effect", self._expected)
        elif isinstance(raised, Failed):
            raised.injection = self.injection
            change = describe_failure(raised, self._call.plane, was_called=self.was_forwarded)
            if self.is_delayed and self._entry is not None:  # the caller waited, and then got the failure
                got = describe(f"{self._entry.got}, then {_describe_failure(raised)}")
                self._amend_entry(replace(self._entry, got=got, change=change))
            self._add_entry("met", _describe_failure(raised), change=change)
        elif isinstance(raised, Exception):
            raise self._build_error(format_exception(raised) + format_error_place(raised)) from raised

    def _is_unchanged(self, value: Any) -> bool:
        if isinstance(value, Completion):
            return are_values_alike(value, self._value, self._call)
        return is_same_value(value, self._value) and render_value(value) == self._text_before

    def _find_new_canaries(self, value: Any) -> tuple[str, ...]:
        """Return the canaries that the fault added to the reply."""
        text = render_value(value)
        if MARK not in text:
            return ()
        before = render_value(self._value) if isinstance(self._value, Completion) else self._text_before
        return tuple(word for word in find_canaries(text) if word not in before)

    def _build_error(self, why: str) -> HarnessError:
        return HarnessError(f"fault {self.injection.mode} failed: {why}", code="fault-broken")

    def _add_entry(
        self,
        effect: Literal["met", "no_effect"],
        got: str,
        *,
        would: str | None = None,
        canaries: tuple[str, ...] = (),
        why: str = "",
        delayed: bool = False,
        change: str = "",
    ) -> None:
        """Record the firing, once; `why` says why it changed nothing."""
        if self._entry is not None:
            return
        injection, call = self.injection, self._call
        plane = injection.plane if call.plane in _OF_FUNCTIONS or call.plane.startswith(STEP) else call.plane
        ran = call.plane == "tool_result"
        note = _join_notes(_RAN if ran and effect == "met" else "", why)
        before = describe(self._expected if would is None else would)
        what = (self.index, plane, shorten_target(call.target), injection.mode, call.n)
        reply = self._reply if effect == "met" else ""
        got = describe(got)
        self._entry = FaultMet(
            *what, effect, before, got, note, self._retry, canaries, ran, reply, self._nth, delayed, change
        )
        self._record_firing(self._entry, amends=False)


def _copy_memory(memory: dict[str, Any]) -> dict[str, Any]:
    try:
        return deepcopy(memory)
    except Exception:  # it may hold any value that a tool returned
        return dict(memory)


async def skip_wait(ms: float) -> None:
    """Do nothing: the caller already waited when the fault fired."""


def _join_notes(*notes: str) -> str:
    return "; ".join([note for note in notes if note])


def _describe_exception(raised: BaseException) -> str:
    """Describe an exception that replaced a reply: a function's with its class, Holdfast's own by its message only."""
    if type(raised).__name__ == "CancelledError":  # from asyncio, which a plain function does not import
        return "nothing: the call was abandoned"
    if isinstance(raised, ConnectionResetError) and raised.errno is None:  # raised by a plane: its client left
        return f"nothing: {raised}"
    if type(raised).__module__.startswith("holdfast.planes."):
        return str(raised) or format_exception(raised)
    return _describe_failure(raised) if isinstance(raised, Failed) else format_exception(raised)


def _describe_failure(failed: Failed) -> str:
    """Describe a failure as `failed: 503 Service Unavailable`, with the status only once."""
    words = str(failed)
    status = "" if failed.status is None or words.startswith(str(failed.status)) else f"{failed.status} "
    return f"{type(failed).__name__.lower()}: {status}{words}"
