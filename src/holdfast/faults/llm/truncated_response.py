"""truncated_response: the model's answer, cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from holdfast.faults.llm_text import cut_short, text_of, with_text
from holdfast.faults.tokens import first_tokens
from holdfast.protocols import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class TruncatedResponse:
    """The model's answer is cut after some tokens. The reply says so where its format can, unless `silent`."""

    max_tokens: Annotated[
        int, Meta(description="How many tokens arrive; a word or a punctuation mark counts as one.", ge=0)
    ] = 10
    silent: Annotated[bool, Meta(description="Claim a normal end instead of `length` or `max_tokens`.")] = False

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        text = text_of(reply.value)
        cut = text if text is None else first_tokens(text, self.max_tokens)
        if cut is None or cut == text:
            return reply
        value = with_text(reply.value, cut)
        return Reply(value if self.silent else cut_short(value))
