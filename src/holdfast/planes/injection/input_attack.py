"""Attacks on the agent's input: each rewrites the turn, and is met if its text is in what the agent reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from holdfast.errors import HarnessError, format_error_place
from holdfast.model.canary import find_canaries
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.planes.describe import describe, format_exception
from holdfast.planes.injection.outcome_comparison import describe_change
from holdfast.protocols.fault import FaultContext

ERASED = "another attack on the input removed its effect"


class InputAttack:
    """One firing. It can be repeated with the same random state, number and memory."""

    def __init__(
        self, index: int, injection: Injection, fault: Any, dice: Callable[[], Random], n: int, memory: dict[str, Any]
    ) -> None:
        self.index = index
        self._injection = injection
        self._fault = fault
        self._dice = dice
        self._n = n
        self._memory = dict(memory)

    def apply(self, text: str, memory: dict[str, Any] | None = None) -> str:
        """Return the rewritten text; raise HarnessError if the attack is broken."""
        mode = self._injection.mode
        ctx = FaultContext(self._dice(), _refuse_sleep, self._n, dict(self._memory) if memory is None else memory)
        try:
            changed = self._fault.rewrite(text, ctx)
        except Exception as broken:
            raise HarnessError(
                f"fault {mode} broke: {format_exception(broken)}{format_error_place(broken)}", code="fault-broken"
            ) from broken
        if not isinstance(changed, str):
            raise HarnessError(f"fault {mode} broke: it gave {type(changed).__name__}, not text", code="fault-broken")
        return changed

    def build_entry(self, text: str, changed: str, turn: int) -> FaultMet:
        """Return its entry in the ledger."""
        planted = tuple(word for word in find_canaries(changed) if word not in text)
        what = (self.index, self._injection.plane, "input", self._injection.mode, turn)
        effect: Any = "no_effect" if changed == text else "met"
        nth = turn if self._injection.schedule.probability < 1.0 else 0
        change = describe_change(text, changed)
        return FaultMet(*what, effect, describe(text), describe(changed), canaries=planted, nth=nth, change=change)


def decide_met(attacks: Sequence[InputAttack], entries: Sequence[FaultMet], text: str, read: str) -> list[FaultMet]:
    """Return the changed ledger entries of several attacks on one text, once the agent's text is known."""
    met_attacks = [attack for attack in attacks if read != text and _rewrite_without(attack, attacks, text) != read]
    acted = [attack for attack, entry in zip(attacks, entries, strict=True) if entry.effect == "met"]
    if not met_attacks and read != text:
        met_attacks = acted[-1:]
    now = []
    for attack, entry in zip(attacks, entries, strict=True):
        left = tuple(word for word in entry.canaries if word in read)
        if entry.effect == "met" and attack not in met_attacks:
            now.append(replace(entry, effect="erased", note=ERASED, canaries=()))
        elif left != entry.canaries:
            now.append(replace(entry, canaries=left))
    return now


def _rewrite_without(left_out: InputAttack, attacks: Sequence[InputAttack], text: str) -> str:
    for attack in attacks:
        if attack is not left_out:
            text = attack.apply(text)
    return text


async def _refuse_sleep(ms: float) -> None:
    raise HarnessError("an attack on the input cannot wait", code="fault-broken")
