"""partial: the first page of a longer result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.faults.values import edit_value, is_rows, list_parts, replace_items, replace_part
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Partial:
    """Returns only the first items of a list or the first part of a text."""

    keep: Annotated[int, Meta(description="The number of list items to keep.", ge=0)] = 1
    fraction: Annotated[float, Meta(description="The part of a text to keep.", ge=0, lt=1)] = 0.5

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.PARTIAL),), see=("invariants.claim_matches_state", "invariants.contains_any")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        ctx.idle = f"the reply has no list longer than {self.keep} and no text to cut"
        return Reply(edit_value(reply.value, self._cut_to_page))

    def _cut_to_page(self, value: Any) -> Any:
        """Cut the first list that is longer than a page to its first items."""
        if isinstance(value, str | bytes | bytearray):
            return value[: int(len(value) * self.fraction)]
        for path, part in list_parts(value):
            if is_rows(part) and len(part) > self.keep:
                return replace_part(value, path, replace_items(part, list(part[: self.keep])))
        return value
