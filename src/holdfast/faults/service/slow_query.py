"""slow_query: the database answers slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_STATEMENT, Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class SlowQuery:
    """Delays the first statement of a transaction."""

    delay_ms: Annotated[int, Meta(description="The delay in ms.", ge=0)] = 5_000

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.SLOW, settings={"delay_ms": 300}),),
        sql_only=True,
        step="statement",
        met=MET_STATEMENT,
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await ctx.sleep(self.delay_ms)
        return await forward(call)
