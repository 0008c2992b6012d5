"""auth_expired: a 401 because the token has expired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class AuthExpired:
    """Rejects the call with status 401: the token has expired. The tool is not called."""

    message: Annotated[str, Meta(description="The error message.")] = "401 Unauthorized: the token has expired"

    traits: ClassVar[FaultTraits] = FaultTraits(reached="never")

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise build_failure(401, self.message)
