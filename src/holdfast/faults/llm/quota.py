"""quota: the account has nothing left."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.faults.failures import failure
from holdfast.protocols import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class Quota:
    """Status 429 as with a rate limit, but the account's quota is used up: no time to wait, no use in retrying."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise failure(429, "429 Too Many Requests: you exceeded your current quota", kind="quota")
