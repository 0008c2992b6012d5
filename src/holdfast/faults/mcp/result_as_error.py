"""result_as_error: a result that is returned as an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from holdfast.protocols.fault import Call, Failed, FaultContext, Forward, Reply


@dataclass(frozen=True)
class ResultAsError:
    """Makes the call and returns its result as a JSON-RPC error."""

    message: Annotated[str, Meta(description="The error message; the result is in its data.")] = "Internal error"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        raise Failed(self.message, kind="rpc_error", body=reply.value)
