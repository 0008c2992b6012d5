"""connections_exhausted: the database accepts no more clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import Call, Failed, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class ConnectionsExhausted:
    """Rejects the client: too many connections (53300, 1040)."""

    traits: ClassVar[FaultTraits] = FaultTraits(sql_only=True, reached="never")

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: too many connections", kind="too_many_connections")
