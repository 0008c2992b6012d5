"""garbage: the model answers nonsense."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.faults.llm_text import end_with, read_text, replace_text
from holdfast.model.completion import Completion, Text
from holdfast.protocols.fault import Call, FaultContext, Forward, Reply

_SIGNS = (
    "abcdefghijklmnopqrstuvwxyz0123456789{}[]<>()\\/|^~#%&*=+;:?!\"'\u00c3\u00a9\u00e2\u20ac\u00b6\u2592\ufffd   \n"
)
_LENGTHS = (40, 2_000)


@dataclass(frozen=True)
class Garbage:
    """Replaces the answer with random characters of about the same length."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        value = (await forward(call)).value
        shortest, longest = _LENGTHS
        length = min(max(len(read_text(value) or ""), shortest), longest)
        nonsense = "".join(ctx.rng.choices(_SIGNS, k=length))
        if isinstance(value, Completion):
            return Reply(end_with(value, (Text(nonsense),), "stop"))
        return Reply(replace_text(value, nonsense))
