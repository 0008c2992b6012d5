"""lost_reply: the call succeeds, but its reply is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import Call, Dropped, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class LostReply:
    """Makes the call, then loses the reply: the caller cannot know that it succeeded."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.LOST_REPLY, common=True, writes=True),),
        met="The other side has answered, and the caller was connected when the reply was lost.",
        see=("invariants.side_effect_once", "service_faults.killed_mid_transaction"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await forward(call)
        raise Dropped(f"{call.target}: the connection was lost before the reply arrived")
