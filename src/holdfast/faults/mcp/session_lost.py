"""session_lost: the server no longer knows the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import Call, Failed, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class SessionLost:
    """Loses the session: error -32001 (HTTP: 404) until the client initializes a new one."""

    message: Annotated[str, Meta(description="The error message.")] = "Session not found"

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.ERROR_ONCE, common=True),), reached="never")

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(self.message, status=404, kind="session_lost")
