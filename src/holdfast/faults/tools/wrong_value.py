"""wrong_value: a lie that fits the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.faults.lies import LIES
from holdfast.faults.values import edited
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class WrongValue:
    """A reply that fits the schema and is wrong: digits transposed, fields swapped, rows mixed up or missing."""

    kinds: Annotated[
        tuple[Literal["digits", "swap", "other_entity", "drop_rows"], ...],
        Meta(
            description="Which lies may be told; one that fits the reply is chosen by chance. Default: all. "
            "`digits`: two digits of a number change places. `swap`: two fields of a record change values. "
            "`other_entity`: a record has a value of another one. `drop_rows`: records are missing.",
            examples=[["digits"]],
        ),
    ] = ()

    traits: ClassVar[FaultTraits] = FaultTraits(
        see=("invariants.claim_matches_state", "invariants.contains_any", "tool_faults.stale")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)

        def lie(data: Any) -> Any:
            kinds = list(self.kinds or LIES)
            ctx.rng.shuffle(kinds)
            told = (LIES[kind](data, ctx.rng) for kind in kinds)
            return next((other for other in told if other is not data), data)

        ctx.idle = "nothing in the reply can be made wrong and still fit"
        return Reply(edited(reply.value, lie))
