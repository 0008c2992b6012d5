"""error: the call fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Error:
    """The call fails: an exception, an HTTP status. The tool is never called."""

    error_code: Annotated[int, Meta(description="The status of the failure.", ge=300, le=599)] = 503
    message: Annotated[str, Meta(description="What the error says; by default the usual words for the status.")] = ""

    traits: ClassVar[FaultTraits] = FaultTraits(
        reached="never", see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise failure(self.error_code, self.message)
