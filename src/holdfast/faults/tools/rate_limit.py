"""rate_limit: a 429 from the tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class RateLimit:
    """Rejects the call with status 429 and the time to wait."""

    retry_after_s: Annotated[float, Meta(description="Seconds until the caller may retry.", ge=0)] = 1
    message: Annotated[str, Meta(description="The error message.")] = ""

    traits: ClassVar[FaultTraits] = FaultTraits(
        reached="never", see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise build_failure(429, self.message, retry_after_s=self.retry_after_s)
