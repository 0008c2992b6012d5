"""quota: the account has nothing left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.failures import failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Quota:
    """Status 429 as with a rate limit, but the account's quota is used up: no time to wait, no use in retrying."""

    traits: ClassVar[FaultTraits] = FaultTraits(see=("llm_faults.rate_limit", "invariants.retries_within"))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise failure(429, "429 Too Many Requests: you exceeded your current quota", kind="quota")
