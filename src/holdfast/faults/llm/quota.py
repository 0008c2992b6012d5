"""quota: the account's quota is used up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Quota:
    """Fails the call with status 429: the quota is used up, and retrying does not help."""

    traits: ClassVar[FaultTraits] = FaultTraits(see=("llm_faults.rate_limit", "invariants.retries_within"))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise build_failure(429, "429 Too Many Requests: you exceeded your current quota", kind="quota")
