"""empty_choices: a chunk without choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from holdfast.faults.llm_text import is_streamed, require_completion
from holdfast.model.completion import EmptyChunk
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class EmptyChoices:
    """Starts a stream with a chunk without choices; a plain reply has no choices."""

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.EMPTY, common=True),), wire_only=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = require_completion((await forward(call)).value, "empty_choices")
        if is_streamed(call):
            return Reply(replace(reply, deltas=(EmptyChunk(), *reply.deltas)))
        return Reply(replace(reply, lacks="choices"))
