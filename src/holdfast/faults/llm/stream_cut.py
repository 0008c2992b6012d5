"""stream_cut: the connection is lost in the middle of the reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_wire import beginning, on_wire
from holdfast.faults.met import LOSS
from holdfast.model.completion import Cut
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class StreamCut:
    """The connection closes in the middle of the reply: no end, no error, nothing more."""

    after_tokens: Annotated[int, Meta(description="How many tokens of text come through.", ge=0)] = 10

    traits: ClassVar[FaultTraits] = FaultTraits(wire_only=True, met=LOSS, see=("llm_faults.truncated_response",))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = on_wire((await forward(call)).value, "stream_cut")
        return Reply(replace(reply, deltas=(*beginning(reply, self.after_tokens), Cut())))
