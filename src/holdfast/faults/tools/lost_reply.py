"""lost_reply: done, but nobody hears of it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.protocols import Call, Dropped, FaultContext, Forward, Reply


@dataclass(frozen=True)
class LostReply:
    """Does the work, then loses the answer: the caller cannot know that it succeeded."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await forward(call)
        raise Dropped(f"{call.target}: the connection was lost before the reply arrived")
