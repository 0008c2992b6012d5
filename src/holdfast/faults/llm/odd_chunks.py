"""odd_chunks: a stream in odd chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from holdfast.faults.llm_text import is_streamed, require_completion
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class OddChunks:
    """Sends the stream in odd chunks: cut inside characters and frames, with comments and repeats.

    The content stays the same. A plain reply is a single chunk and is not affected.
    """

    traits: ClassVar[FaultTraits] = FaultTraits(wire_only=True, harmless=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        passed = await forward(call)
        reply = require_completion(passed.value, "odd_chunks")
        return Reply(replace(reply, odd=True)) if is_streamed(call) else passed
