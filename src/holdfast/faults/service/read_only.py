"""read_only: the database accepts no writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
class ReadOnly:
    """Rejects the writes of a transaction: read-only (25006, 1290)."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.ERROR_ALWAYS, lasting=True),),
        sql_only=True,
        step="write",
        reached="never",
        met=MET_STATEMENT,
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: read-only", kind="read_only")
