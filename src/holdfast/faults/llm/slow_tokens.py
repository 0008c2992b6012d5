"""slow_tokens: the model answers slowly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import read_text
from holdfast.model.completion import Completion, Delta, Pause, Text, ToolCall
from holdfast.model.shorten import count_tokens, split_tokens
from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class SlowTokens:
    """Delays the first token and each token after it."""

    ttft_ms: Annotated[int, Meta(description="Time to the first token, in milliseconds.", ge=0)] = 5_000
    per_token_ms: Annotated[int, Meta(description="Time between tokens, in milliseconds.", ge=0)] = 200

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.SLOW, settings={"ttft_ms": 300, "per_token_ms": 5}),), harmless=True, met=MET_WAIT
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        if not self.ttft_ms and not self.per_token_ms:
            return reply
        if isinstance(reply.value, Completion):
            await ctx.sleep(self.ttft_ms)
            return Reply(replace(reply.value, deltas=tuple(self._send_slowly(reply.value))))
        after_first = max(count_tokens(read_text(reply.value) or "") - 1, 0)
        await ctx.sleep(self.ttft_ms + self.per_token_ms * after_first)
        return reply

    def _send_slowly(self, reply: Completion) -> Iterator[Delta]:
        """Send token by token, with a pause before each except the first; a call takes as long as its arguments."""
        begun = False
        for delta in reply.deltas:
            parts = [Text(part) for part in split_tokens(delta.text)] if isinstance(delta, Text) else [delta]
            for part in parts:
                tokens = _count_tokens(part)
                if begun and tokens and self.per_token_ms:
                    yield Pause(self.per_token_ms * tokens)
                begun = begun or tokens > 0
                yield part


def _count_tokens(delta: Delta) -> int:
    if isinstance(delta, ToolCall):
        return 1 + count_tokens(delta.arguments)
    return 1 if isinstance(delta, Text) else 0
