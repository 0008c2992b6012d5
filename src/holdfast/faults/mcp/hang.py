"""hang: the server never answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, Reply, TimedOut


@dataclass(frozen=True)
class Hang:
    """Never answers the call; the connection stays open."""

    done: Annotated[bool, Meta(description="Do the work first.")] = False

    traits: ClassVar[FaultTraits] = FaultTraits(reached="maybe", met=MET_WAIT, see=("invariants.side_effect_once",))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.done:
            await forward(call)
        raise TimedOut(f"{call.target}: no answer at all", kind="hang")
