"""stale: the reply of an earlier call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.faults.values import are_equal, copy_value
from holdfast.model.codec import digest
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

_REPLIES_LIMIT = 50  # replies per target; the earliest ones are returned


@dataclass(frozen=True)
class Stale:
    """Returns the reply of an earlier call. The first call is not hit."""

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.STALE),), see=("tool_faults.wrong_value",))

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None:
        """Store the reply of a call."""
        replies: list[tuple[str, Any]] = memory.setdefault(call.target, [])
        if len(replies) < _REPLIES_LIMIT:
            replies.append((_hash_arguments(call), copy_value(reply.value)))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        current_arguments = _hash_arguments(call)
        earlier: list[tuple[str, Any]] = [
            (arguments, value)
            for arguments, value in ctx.memory.get(call.target, ())
            if not are_equal(value, reply.value)
        ]
        self.watch(call, reply, ctx.memory)
        if not earlier:
            return reply
        _, value = next((e for e in earlier if e[0] != current_arguments), earlier[0])
        return Reply(copy_value(value))


def _hash_arguments(call: Call) -> str:
    return digest(repr(sorted(call.arguments.items())).encode(errors="replace"), 16)
