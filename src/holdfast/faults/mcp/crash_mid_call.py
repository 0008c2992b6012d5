"""crash_mid_call: the server dies under the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.met import LOSS
from holdfast.protocols.fault import Call, Dropped, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class CrashMidCall:
    """The server is killed while a call is open and its pipe closes; over HTTP, connection and session are lost."""

    done: Annotated[bool, Meta(description="Whether the server dies after the work, before its answer.")] = False

    traits: ClassVar[FaultTraits] = FaultTraits(reached="maybe", met=LOSS, see=("invariants.side_effect_once",))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.done:
            await forward(call)
        raise Dropped(f"{call.target}: the server died during the call", kind="crash")
