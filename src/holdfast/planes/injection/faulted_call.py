"""A call through the faults that fire on it, and the decision which of them were met.

A fault is met if removing it alone would have changed what arrived. If one fault fired, comparing its reply with its
input decides. If several fired, Holdfast leaves out each fault once and replays the others on the stored reply: the
other side is never called a second time. An attack on the agent's input is a fault on a call whose reply is the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.completion import Completion, Text
from holdfast.model.observation import FaultMet
from holdfast.planes.describe import render_value
from holdfast.planes.injection.firing import Firing
from holdfast.planes.injection.ledger import Ledger
from holdfast.planes.injection.outcome_comparison import CallEnd, are_alike, read_end_text
from holdfast.protocols.fault import Call, Failed, Fits, Forward, Receives, Reply, Sleep

T = TypeVar("T")

_ERASED = "another fault on this call removed its effect"
_GIVEN_UP = "the call was abandoned"
_OTHER = "something else"


class FaultedCall(Struct, eq=False):
    """A call in progress: how it is forwarded, which faults fired on it, and what the other side replied."""

    forward: Forward
    untouched: Forward
    sleep: Sleep
    ledger: Ledger
    retry: int = 0
    modes: dict[int, str] | None = None
    """The modes of the faults that were met, by index of the injection, for the caller."""
    sent: Callable[[], None] | None = None
    fits: Fits | None = None
    receives: Receives | None = None
    needs_reply: bool = False
    """Whether a fault fired or watches, and must be able to read the reply."""
    fired: list[Firing] = field(default_factory=list)
    """The firings, outermost first."""
    answer: CallEnd | None = None
    """The other side's reply, if several faults fired; None if the call did not get there."""
    text_before: str = ""
    """The reply as text, before a fault could change it in place."""

    def record(self, met: FaultMet, *, amends: bool = False) -> None:
        """Record a firing, or with `amends` its outcome."""
        if self.modes is not None:
            self.modes.pop(met.index, None)
            if met.effect == "met":
                self.modes[met.index] = met.mode
        (self.ledger.amend if amends else self.ledger.record)(met)

    async def pass_on(self, call: Call) -> Reply:
        """Forward the call to the other side."""
        if self.sent is not None:
            self.sent()
        forward = self.forward if self.needs_reply else self.untouched
        if len(self.fired) < 2:
            return await forward(call)
        try:
            reply = await forward(call)
        except BaseException as raised:
            self.answer = raised
            raise
        self.answer, self.text_before = reply, _render_reply(reply)
        return reply

    async def settle(self, arrived: CallEnd, call: Call) -> None:
        """Decide, after the call has ended, which of the fired faults were met."""
        if len(self.fired) > 1:
            await self._compare_outcomes(arrived, call)

    async def _compare_outcomes(self, arrived: CallEnd, call: Call) -> None:
        """Decide which of several fired faults were met."""
        # The agent gave up, or something broke that is not a fault: nothing of the faults arrived, except delays.
        if not isinstance(arrived, Reply | Failed) and arrived is not self.answer:
            if not isinstance(arrived, HarnessError):
                self._mark_lost(_GIVEN_UP)
            return
        # What arrived is what the other side replied, and no fault changed that in place: the faults cancelled each
        # other out.
        answer = self.answer
        if answer is not None:
            in_place = isinstance(answer, Reply) and _render_reply(answer) != self.text_before
            if not in_place and are_alike(arrived, answer, call, self.receives):
                self._mark_lost(_ERASED)
                return
        # A fault that planted a text is met only if some of that text arrived. Of these, a fault is met if the reply
        # would have been another one without it.
        text = read_end_text(arrived, self.receives)
        visible = [firing for firing in self.fired if firing.has_left_trace(text)]
        met = [firing for firing in visible if await self._is_met(firing, arrived, call)]
        # The reply differs from the faultless one and no single fault explains it, because each alone would have been
        # enough (two equal faults, say): then the outermost is met.
        if not met:
            met = await self._find_outermost(visible, call)
        self._mark_lost(_ERASED, met)
        for firing in met:
            firing.mark_met()
            firing.keep_arrived_canaries(text)

    def _mark_lost(self, why: str, met_firings: Sequence[Firing] = ()) -> None:
        for firing in self.fired:
            if firing not in met_firings and not firing.is_delayed:
                firing.mark_erased(why)

    async def _is_met(self, firing: Firing, arrived: CallEnd, call: Call) -> bool:
        """Return whether something else would have arrived without this fault."""
        outer, base = self.fired, self.answer
        # The innermost fault did not pass the call on, so nobody knows what the other side would have replied. Its own
        # outcome is the base for the others. For itself the base is any other outcome of the same kind: it is met
        # unless the faults around it make the same of both.
        if base is None:
            outer, base = self.fired[:-1], self.fired[-1].outcome
            if firing is self.fired[-1] and base is not None:
                base = _make_other_outcome(base)
        if base is None:
            return False
        without = await _replay([other for other in outer if other is not firing], base, call)
        return without is not None and not are_alike(arrived, without, call, self.receives)

    async def _find_outermost(self, visible: Sequence[Firing], call: Call) -> list[Firing]:
        """Return the first fault that changes the reply even alone."""
        base = self.answer if self.answer is not None else self.fired[-1].outcome
        for firing in visible:
            alone = await _replay([firing], base, call) if base is not None else None
            if base is not None and alone is not None and not are_alike(alone, base, call, self.receives):
                return [firing]
        return [firing for firing in visible if firing.effect == "met"][:1]


async def _replay(firings: Sequence[Firing], base: CallEnd, call: Call) -> CallEnd | None:
    """Apply these faults to an outcome again, the first outermost; return None if they cannot be replayed on it."""

    async def apply_from(at: int, passed: Call) -> Reply:
        if at == len(firings):
            if isinstance(base, Reply):
                return base
            raise base

        async def onward(call: Call) -> Reply:
            return await apply_from(at + 1, call)

        return await firings[at].replay(passed, onward)

    try:
        return await apply_from(0, call)
    except Failed as failed:
        return failed
    except Exception as raised:
        return raised if raised is base else None


def _make_other_outcome(outcome: CallEnd) -> CallEnd:
    """Return another outcome of the same kind: if faults turn both into the same result, the result does not depend on
    the outcome."""
    if not isinstance(outcome, Reply):
        return Failed(_OTHER)
    value = outcome.value
    if isinstance(value, Completion):
        return replace(outcome, value=replace(value, deltas=(Text(_OTHER),), lacks=""))
    if isinstance(value, dict):
        return replace(outcome, value={"other": _OTHER})
    return replace(outcome, value=[_OTHER] if isinstance(value, list) else _OTHER)


def _render_reply(reply: Reply) -> str:
    return "" if isinstance(reply.value, Completion) else render_value(reply.value)


class FaultWaited(HarnessError):
    """A fault awaited something other than its call or its clock."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that must finish without waiting, because a fault on a plain function cannot wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what a StopIteration carries is untyped
    coroutine.close()
    raise FaultWaited("a fault may await only forward() and ctx.sleep()", code="fault-broken")
