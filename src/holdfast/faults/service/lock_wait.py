"""lock_wait: another transaction holds the lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import (
    MET_STATEMENT,
    Call,
    Failed,
    FaultContext,
    FaultTraits,
    Forward,
    HuntUse,
    Reply,
    Rung,
)


@dataclass(frozen=True)
class LockWait:
    """Makes the first write of a transaction wait for a lock and fail (55P03, 1205)."""

    delay_ms: Annotated[int, Meta(description="The time to wait, in ms.", ge=0)] = 5_000

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.HANG, settings={"delay_ms": 1000}),),
        sql_only=True,
        step="write",
        reached="never",
        met=MET_STATEMENT,
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await ctx.sleep(self.delay_ms)
        raise Failed(f"{call.target}: lock wait timeout", kind="lock_timeout")
