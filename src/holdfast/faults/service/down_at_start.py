"""down_at_start: the service is not up yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import Call, Dropped, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class DownAtStart:
    """Closes the first connections, or those of the first milliseconds; then works."""

    connections: Annotated[
        int, Meta(description="How many to close; default 3, unless for_ms is set.", ge=0, examples=[3])
    ] = 0
    for_ms: Annotated[int, Meta(description="How long it is down from the start of the trial, in ms.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(reached="never", see=("invariants.recovers_within_ms",))

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.connections and self.for_ms:
            yield "for_ms", "connections and for_ms cannot be combined"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        count = self.connections or 3
        if call.arguments.get("since_ms", 0.0) < self.for_ms if self.for_ms else ctx.n <= count:
            raise Dropped(f"{call.target}: not started yet", kind="closed")
        return await forward(call)
