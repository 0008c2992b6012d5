"""truncated_response: the model's answer is cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import read_text, replace_text, set_early_end
from holdfast.faults.llm_wire import end_with, take_first_tokens
from holdfast.model.completion import Completion, Usage
from holdfast.model.tokens import take_tokens
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class TruncatedResponse:
    """Cuts the answer after some tokens. The reply says so where its format can, unless `silent`."""

    max_tokens: Annotated[
        int, Meta(description="The number of tokens that arrive; a word or a punctuation mark is one.", ge=0)
    ] = 10
    silent: Annotated[bool, Meta(description="Report a normal end instead of `length` or `max_tokens`.")] = False

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(
            HuntUse(rung=Rung.PARTIAL, common=True, settings={"max_tokens": 8}),
            HuntUse(rung=Rung.PARTIAL, common=True, settings={"max_tokens": 8, "silent": True}),
        ),
        see=("llm_faults.stream_cut",),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        text = read_text(reply.value)
        cut = text if text is None else take_tokens(text, self.max_tokens)
        if cut is None or cut == text:
            return reply
        if isinstance(reply.value, Completion):
            return Reply(self._cut_on_wire(reply.value))
        value = replace_text(reply.value, cut)
        return Reply(value if self.silent else set_early_end(value, "length"))

    def _cut_on_wire(self, reply: Completion) -> Completion:
        """Returns the chunks before the cut, without later tool calls; usage counts only what was sent."""
        cut = end_with(reply, take_first_tokens(reply, self.max_tokens), "stop" if self.silent else "length")
        return replace(cut, deltas=tuple([self._cut_usage(d) if isinstance(d, Usage) else d for d in cut.deltas]))

    def _cut_usage(self, usage: Usage) -> Usage:
        return replace(usage, output_tokens=min(usage.output_tokens, self.max_tokens))
