"""truncated_response: the model's answer is cut off."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import end_with, read_text, replace_text, set_early_end, take_first_tokens
from holdfast.model.completion import Completion, Usage
from holdfast.model.shorten import count_tokens, take_tokens
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

_INTEGER_PART = re.compile(r"\d+(?=[.,]\d)")


@dataclass(frozen=True)
class TruncatedResponse:
    """Cuts the answer after some tokens. The reply says so where its format can, unless `silent`."""

    max_tokens: Annotated[
        int, Meta(description="The number of tokens that arrive; a word or a punctuation mark is one.", ge=0)
    ] = 10
    silent: Annotated[bool, Meta(description="Report a normal end instead of `length` or `max_tokens`.")] = False
    in_number: Annotated[
        bool,
        Meta(description="Cut the first number such as `24.90` at its point or comma, so that the answer says `24`."),
    ] = False

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(
            HuntUse(rung=Rung.PARTIAL, common=True, settings={"max_tokens": 8}),
            HuntUse(rung=Rung.PARTIAL, common=True, settings={"max_tokens": 8, "silent": True}),
            # Half a number reads like another number: no cut after a fixed length is sure to leave one. A reply without
            # a number may be a short command, such as `rm -rf build/cache`, so that eight tokens are all of it.
            HuntUse(rung=Rung.PARTIAL, settings={"max_tokens": 4, "in_number": True}),
        ),
        see=("llm_faults.stream_cut",),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        text = read_text(reply.value)
        limit = self._count_kept_tokens(text or "")
        cut = text if text is None else take_tokens(text, limit)
        if cut is None or cut == text:
            return reply
        if isinstance(reply.value, Completion):
            return Reply(self._cut_on_wire(reply.value, limit))
        value = replace_text(reply.value, cut)
        return Reply(value if self.silent else set_early_end(value, "length"))

    def _count_kept_tokens(self, text: str) -> int:
        number = _INTEGER_PART.search(text) if self.in_number else None
        return self.max_tokens if number is None else count_tokens(text[: number.end()])

    def _cut_on_wire(self, reply: Completion, limit: int) -> Completion:
        """Return the chunks before the cut, without later tool calls; usage counts only what was sent."""
        # A model that stops at its limit has billed only what it wrote.
        cut = end_with(reply, take_first_tokens(reply, limit), "stop" if self.silent else "length")
        deltas = [
            replace(one, output_tokens=min(one.output_tokens, limit)) if isinstance(one, Usage) else one
            for one in cut.deltas
        ]
        return replace(cut, deltas=tuple(deltas))
