"""rate_limit: a 429 from the model's provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class RateLimit:
    """Rejects the call with status 429 and a `Retry-After`."""

    retry_after_s: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Seconds until the caller may retry; null leaves the header out."),
    ] = 1

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.ERROR_ONCE, common=True),),
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        message = "429 Too Many Requests: rate limit reached"
        raise build_failure(429, message, retry_after_s=self.retry_after_s, kind="rate_limit")
