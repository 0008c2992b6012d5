"""malformed_rpc: an answer that is not JSON-RPC."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.protocols.fault import Call, Failed, FaultContext, Forward, Reply


@dataclass(frozen=True)
class MalformedRpc:
    """The server's answer is cut in the middle, so that it is no JSON-RPC message."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await forward(call)
        raise Failed(f"{call.target}: the answer is not JSON-RPC", kind="malformed_rpc")
