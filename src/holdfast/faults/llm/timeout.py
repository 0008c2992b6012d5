"""timeout: the model does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from holdfast.protocols import Call, FaultContext, Forward, Reply, TimedOut


@dataclass(frozen=True)
class Timeout:
    """The model takes the question and never answers; then a timeout error."""

    delay_ms: Annotated[int, Meta(description="How long the call hangs, in milliseconds.", ge=0)] = 10_000

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await ctx.sleep(self.delay_ms)
        raise TimedOut(f"{call.target}: the model did not answer within {self.delay_ms} ms")
