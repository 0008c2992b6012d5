"""content_filter: the provider withholds the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.llm_text import end_with, read_text, replace_text, set_early_end
from holdfast.model.completion import Completion
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class ContentFilter:
    """Withholds the answer, with a finish reason that says so where the format has one."""

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.STALE, common=True),))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        value = (await forward(call)).value
        if isinstance(value, Completion):
            return Reply(end_with(value, (), "content_filter"))
        blank = value if read_text(value) is None else replace_text(value, "")
        return Reply(set_early_end(blank, "content_filter"))
