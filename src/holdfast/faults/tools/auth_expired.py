"""auth_expired: 401, whatever was allowed before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class AuthExpired:
    """The call is refused with status 401: the token has expired. With `after_calls: N`, from call N+1 on."""

    message: Annotated[str, Meta(description="What the error says.")] = "401 Unauthorized: the token has expired"

    traits: ClassVar[FaultTraits] = FaultTraits(reached="never")

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise failure(401, self.message)
