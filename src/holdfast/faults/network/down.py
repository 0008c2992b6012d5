"""down: nobody is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.met import LOSS
from holdfast.protocols.fault import Call, Dropped, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Down:
    """The connection is closed at once, without a byte. Behind a proxy nothing can look like a refused connection."""

    traits: ClassVar[FaultTraits] = FaultTraits(reached="never", met=LOSS)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Dropped(f"{call.target}: the connection was closed at once", kind="closed")
