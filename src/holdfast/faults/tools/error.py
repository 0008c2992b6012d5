"""error: the call fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Error:
    """Makes the call fail: an exception or an HTTP status. The tool is not called."""

    error_code: Annotated[int, Meta(description="The status code.", ge=300, le=599)] = 503
    message: Annotated[str, Meta(description="The error message; default: the standard text of the status.")] = ""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(
            HuntUse(rung=Rung.ERROR_ONCE, common=True),
            HuntUse(rung=Rung.ERROR_ALWAYS, lasting=True),
        ),
        reached="never",
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise build_failure(self.error_code, self.message)
