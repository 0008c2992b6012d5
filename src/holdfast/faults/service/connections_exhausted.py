"""connections_exhausted: the database takes no more clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from holdfast.protocols import Call, Failed, FaultContext, Forward, Reply


@dataclass(frozen=True)
class ConnectionsExhausted:
    """The database turns the client away: too many connections (53300, 1040)."""

    sql_only: ClassVar[bool] = True
    reached: ClassVar[Literal["never", "always", "maybe"]] = "never"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: too many connections", kind="too_many_connections")
