"""killed_mid_transaction: the connection dies inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.protocols.fault import Call, Dropped, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class KilledMidTransaction:
    """Kills the connection after the first write of a transaction, or when COMMIT is sent."""

    at: Annotated[Literal["write", "commit"], Meta(description="After the first write, or when COMMIT is sent.")] = (
        "write"
    )
    outcome: Annotated[
        Literal["lost", "done"],
        Meta(description="`lost`: rolled back. `done`, with `at: commit`: committed, but the reply is lost."),
    ] = "lost"

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(
            HuntUse(rung=Rung.LOST_REPLY, common=True, writes=True, settings={"at": "commit", "outcome": "done"}),
            HuntUse(rung=Rung.KILLED, writes=True),
        ),
        sql_only=True,
        reached="maybe",
        met="The connection died inside a transaction while the client was connected. "
        "At a commit, only if the transaction wrote.",
        see=("invariants.side_effect_once", "tool_faults.lost_reply", "invariants.sql"),
    )

    def configured(self) -> FaultTraits:
        return replace(self.traits, step=self.at)

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.outcome == "done" and self.at != "commit":
            yield (
                "outcome",
                "done requires at: commit, because a transaction that dies after its first write is rolled back",
            )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.outcome == "done":
            await forward(call)
            raise Dropped(f"{call.target}: the connection died after COMMIT was done", kind="closed")
        if self.at == "commit":
            raise Dropped(f"{call.target}: the connection died before COMMIT", kind="closed")
        if not call.arguments.get("ends"):  # otherwise the write is the complete transaction, and would be committed
            await forward(call)
        raise Dropped(f"{call.target}: the connection died after a write", kind="closed")
