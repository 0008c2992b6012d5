"""phantom_success: the reply says "ok", but the tool was not called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class PhantomSuccess:
    """Returns "ok" without calling the tool."""

    shape: Annotated[
        Literal["object", "text"], Meta(description='The reply: the object {"status": "ok"} or the text "ok".')
    ] = "object"

    traits: ClassVar[FaultTraits] = FaultTraits(
        reached="never", on_results=False, see=("invariants.claim_matches_state", "invariants.contains_any")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        return Reply({"status": "ok"} if self.shape == "object" else "ok")
