"""stream_cut: the connection is lost in the middle of the reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import require_completion, take_first_tokens
from holdfast.model.completion import Cut
from holdfast.protocols.fault import MET_LOSS, Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class StreamCut:
    """Closes the connection in the middle of the reply, without an end or an error."""

    after_tokens: Annotated[int, Meta(description="The number of text tokens that arrive.", ge=0)] = 10

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.LOST_REPLY, common=True, settings={"after_tokens": 4}),),
        wire_only=True,
        met=MET_LOSS,
        see=("llm_faults.truncated_response",),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = require_completion((await forward(call)).value, "stream_cut")
        return Reply(replace(reply, deltas=(*take_first_tokens(reply, self.after_tokens), Cut())))
