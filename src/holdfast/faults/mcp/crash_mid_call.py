"""crash_mid_call: the server dies during the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_LOSS, Call, Dropped, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class CrashMidCall:
    """Kills the server during a call; over HTTP, drops the connection and the session."""

    done: Annotated[bool, Meta(description="Die after the work is done, before the answer.")] = False

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.KILLED),), reached="maybe", met=MET_LOSS, see=("invariants.side_effect_once",)
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.done:
            await forward(call)
        raise Dropped(f"{call.target}: the server died during the call", kind="crash")
