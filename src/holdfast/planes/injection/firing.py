"""One firing of a fault on one call: the ledger has it before the agent can observe what the fault does."""

from __future__ import annotations

import re
from random import Random
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from holdfast.errors import HarnessError, place_of
from holdfast.model.canary import MARK, canaries
from holdfast.model.completion import Completion
from holdfast.model.delivery import AS_IT_IS
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.planes.describe import describe, said, same, witness
from holdfast.planes.injection.fault_change import describe_change, describe_failure
from holdfast.planes.injection.outcome_comparison import CallEnd, are_values_alike
from holdfast.planes.injection.replayed_fault import ReplayedFault
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call, Failed, FaultContext, Fits, Forward, Reply, Sleep

PIECE = 16
"""Characters of a payload that must have come through together: a letter or two are no attack."""

_PLAIN = re.compile(r"[^\"'\\\x00-\x1f\x7f]+")
"""What reads the same in a text, in JSON and in what Python prints."""
_UNSEEN = object()
_OF_FUNCTIONS = ("tool", "llm")
"""Planes whose calls carry the name of the fault's own plane in the ledger; the others say where it was met."""
STEP = "service."
"""What the planes of the steps of a service begin with; in the ledger all of them are the plane `service`."""
TOOL_PLANES = ("tool", "tool_result", "mcp", "http")
"""Where calls of tools are seen: what those give is kept, since a replay gives it again."""
_SHOWS = "what it did shows in what arrived"
_RAN = "the tool itself ran; its result was changed on the way to the model"


class FiringLedger(Protocol):
    """Where a firing is entered, and amended once it is known what of it arrived."""

    def record(self, met: FaultMet) -> None: ...

    def amend(self, met: FaultMet) -> None: ...


class Firing:
    """A firing under way: what would have arrived, who raised an exception, whether the ledger has the firing."""

    def __init__(
        self, index: int, injection: Injection, call: Call, ledger: FiringLedger, retry: int = 0, nth: int = 0
    ) -> None:
        self._retry = retry
        self._nth = nth if injection.schedule.probability < 1.0 else 0
        self.index = index
        self.injection = injection
        self._call = call
        self._ledger = ledger
        self._would = "what the tool gave" if call.plane == "tool_result" else "not asked"
        self._value: Any = _UNSEEN
        self._came: Reply | None = None
        self._witness = ""
        self._reply = ""
        self._theirs: BaseException | None = None
        self._entry: FaultMet | None = None
        self._planted = ""
        self.asked = False
        """The fault passed the call on."""
        self.outcome: CallEnd | None = None
        """Its reply or failure, once it has ended."""
        self.replay: ReplayedFault | None = None
        """Applies the fault once more, if other faults may fire on the call, too."""

    @property
    def effect(self) -> Literal["met", "no_effect", "erased"]:
        """The effect that the ledger has so far."""
        return "no_effect" if self._entry is None else self._entry.effect

    @property
    def delayed(self) -> bool:
        """It delayed the caller, whatever happened afterwards."""
        return self._entry is not None and self._entry.delayed

    async def run(
        self,
        fault: Any,
        onward: Forward,
        sleep: Sleep,
        rng: Random,
        n: int,
        memory: dict[str, Any],
        fits: Fits | None = None,
    ) -> Reply:
        """The fault's reply, or its failure. What the tool or the agent raised passes untouched."""

        async def forward(call: Call) -> Reply:
            return await self._forward(onward, call)

        async def wait(ms: float) -> None:
            await self._wait(sleep, ms)

        ctx = FaultContext(rng, wait, n, memory)
        if fits is not None:
            ctx.fits = fits
        try:
            reply = await fault.apply(self._call, forward, ctx)
        except BaseException as raised:
            self._failed(raised)
            raise
        if not isinstance(reply, Reply):
            raise self._broke(f"it gave {type(reply).__name__}, not a Reply")
        came = self._came
        if came is not None and reply is not came:  # a reply made of its value: whatever else came with it is kept
            kept = came.delivery if reply.delivery is AS_IT_IS else reply.delivery
            reply = replace(came, value=reply.value, delivery=kept)
        self.outcome, self._planted = reply, ctx.planted
        resent = reply.delivery != (AS_IT_IS if came is None else came.delivery)
        unchanged = not resent and self._unchanged(reply.value)
        got = str(reply.delivery) if resent else describe(reply.value)
        why = ctx.idle if unchanged else ""
        change = "" if unchanged or resent or came is None else describe_change(self._value, reply.value)
        planted = self._new_canaries(reply.value)
        self._note("no_effect" if unchanged else "met", got, canaries=planted, why=why, change=change)
        return reply

    def lose(self, why: str) -> None:
        """Nothing of it arrived: if it had changed something, another fault erased that."""
        if self._entry is not None and self._entry.effect == "met":
            self._change(replace(self._entry, effect="erased", note=_joined(self._entry.note, why), canaries=()))

    def stand(self) -> None:
        """It is met although its own reply showed no change: another fault had done the same, or hid it."""
        if self._entry is not None and self._entry.effect != "met":
            self._change(replace(self._entry, effect="met", note=_SHOWS))

    def left_something_in(self, shown: str) -> bool:
        """Whether a part of its planted text is in the text that arrived; true for a fault that plants nothing."""
        if not self._planted:
            return True
        return came_through(self._planted, shown)

    def arrived_as(self, shown: str) -> None:
        """Keeps only the canaries that are in the text that arrived."""
        entry = self._entry
        if entry is not None and entry.canaries:
            left = tuple(word for word in entry.canaries if word in shown)
            if left != entry.canaries:
                self._change(replace(entry, canaries=left))

    def _change(self, entry: FaultMet) -> None:
        self._entry = entry
        self._ledger.amend(entry)

    async def _forward(self, onward: Forward, call: Call) -> Reply:
        self.asked = True
        try:
            reply = await onward(call)
        except BaseException as raised:  # the tool's own failure, or an inner fault's
            self._theirs, self._would = raised, _instead(raised)
            raise
        self._came, self._value, self._would = reply, reply.value, describe(reply.value)
        if not isinstance(reply.value, Completion):  # a fault may change the value in its place
            self._witness = witness(reply.value)
        if self._call.plane in TOOL_PLANES:
            self._reply = write_reply(reply.value)
        return reply

    async def _wait(self, sleep: Sleep, ms: float) -> None:
        # A delay counts from its first moment, because the caller is waiting; so the ledger has it before the sleep.
        if ms > 0:
            would = "" if self._value is _UNSEEN else self._would
            self._note("met", f"a delay of {ms:g} ms", would=would, delayed=True)
        try:
            await sleep(ms)
        except BaseException as raised:  # the agent gave up waiting: its own timeout, a cancelled task
            self._theirs = raised
            raise

    def _failed(self, raised: BaseException) -> None:
        """Decides who raised an exception; raises HarnessError if it is a bug of the fault."""
        self.outcome = raised
        if raised is self._theirs:
            self._note("no_effect", self._would)
        elif isinstance(raised, Failed):
            raised.injection = self.injection
            change = describe_failure(raised, self._call.plane, was_called=self.asked)
            self._note("met", _failure(raised), change=change)
        elif isinstance(raised, Exception):
            raise self._broke(said(raised) + place_of(raised)) from raised

    def _unchanged(self, value: Any) -> bool:
        if isinstance(value, Completion):
            return are_values_alike(value, self._value, self._call)
        return same(value, self._value) and witness(value) == self._witness

    def _new_canaries(self, value: Any) -> tuple[str, ...]:
        """The canaries that the fault put into the reply, without those that were there before."""
        shown = witness(value)
        if MARK not in shown:
            return ()
        before = witness(self._value) if isinstance(self._value, Completion) else self._witness
        return tuple(word for word in canaries(shown) if word not in before)

    def _broke(self, why: str) -> HarnessError:
        return HarnessError(f"fault {self.injection.mode} broke: {why}", code="fault-broken")

    def _note(
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
        """Enters the firing, once; `why` says why it changed nothing."""
        if self._entry is not None:
            return
        kind, call = self.injection, self._call
        plane = kind.plane if call.plane in _OF_FUNCTIONS or call.plane.startswith(STEP) else call.plane
        ran = call.plane == "tool_result"
        note = _joined(_RAN if ran else "", why)
        before = describe(self._would if would is None else would)
        what = (self.index, plane, call.target, kind.mode, call.n)
        reply = self._reply if effect == "met" else ""
        got = describe(got)
        self._entry = FaultMet(
            *what, effect, before, got, note, self._retry, canaries, ran, reply, self._nth, delayed, change
        )
        self._ledger.record(self._entry)


def _joined(*notes: str) -> str:
    return "; ".join([note for note in notes if note])


def _instead(raised: BaseException) -> str:
    """What came instead of a reply: what a function raised by its class, what is ours in words alone."""
    if type(raised).__name__ == "CancelledError":  # of asyncio, which a plain function does not need
        return "nothing: the call was given up"
    if isinstance(raised, ConnectionResetError) and raised.errno is None:  # a plane's: its client left
        return f"nothing: {raised}"
    if type(raised).__module__.startswith("holdfast.planes."):
        return str(raised) or said(raised)
    return _failure(raised) if isinstance(raised, Failed) else said(raised)


def _failure(failed: Failed) -> str:
    """`failed: 503 Service Unavailable`; the status once, though some messages begin with it."""
    words = str(failed)
    status = "" if failed.status is None or words.startswith(str(failed.status)) else f"{failed.status} "
    return f"{type(failed).__name__.lower()}: {status}{words}"


def came_through(payload: str, shown: str) -> bool:
    """Whether a canary of the payload, or a piece of its words, is in what was shown."""
    return any(piece in shown for piece in _pieces(payload))


def _pieces(payload: str) -> list[str]:
    words = canaries(payload)
    for word in words:  # which differ from those of other attacks in their last letters alone
        payload = payload.replace(word, "\n")
    runs = _PLAIN.findall(payload)
    pieces = [run[at : at + PIECE] for run in runs for at in range(0, len(run) - PIECE + 1, PIECE)]
    return words + pieces or sorted(runs, key=len)[-1:] or [payload]
