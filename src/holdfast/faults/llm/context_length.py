"""context_length: the request is too long for the model."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class ContextLength:
    """Rejects the request with status 400: it exceeds the context length."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        message = "400 Bad Request: the messages are longer than this model's maximum context length"
        raise build_failure(400, message, kind="context_length")
