"""serialization_failure: the transaction collided with another and is rolled back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

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
class SerializationFailure:
    """Rolls the transaction back because of a conflict (40001, 1213)."""

    at: Annotated[Literal["write", "commit"], Meta(description="At the first write, or when COMMIT is sent.")] = (
        "commit"
    )

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.ERROR_ONCE),),
        sql_only=True,
        reached="never",
        met=f"{MET_STATEMENT} At a commit, only if the transaction wrote.",
        see=("invariants.side_effect_once",),
    )

    def configured(self) -> FaultTraits:
        return replace(self.traits, step=self.at)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: could not serialize access", kind="serialization_failure")
