"""down: the connection is closed immediately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import MET_LOSS, Call, Dropped, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Down:
    """Closes the connection immediately, without a byte."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.ERROR_ALWAYS, lasting=True),), reached="never", met=MET_LOSS
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Dropped(f"{call.target}: the connection was closed immediately", kind="closed")
