"""content_filter: the provider withholds the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.llm_text import ended, text_of, with_text
from holdfast.faults.llm_wire import ending
from holdfast.model.completion import Completion
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class ContentFilter:
    """Withholds the answer, with a finish reason that says so where the format has one."""

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.STALE, common=True),))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        value = (await forward(call)).value
        if isinstance(value, Completion):
            return Reply(ending(value, (), "content_filter"))
        blank = value if text_of(value) is None else with_text(value, "")
        return Reply(ended(blank, "content_filter"))
