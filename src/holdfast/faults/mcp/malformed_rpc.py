"""malformed_rpc: an answer that is not JSON-RPC."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.protocols.fault import Call, Failed, FaultContext, Forward, Reply


@dataclass(frozen=True)
class MalformedRpc:
    """Cuts the answer off, so that it is not a JSON-RPC message."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await forward(call)
        raise Failed(f"{call.target}: the answer is not JSON-RPC", kind="malformed_rpc")
