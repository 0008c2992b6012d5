"""repeat_tool_call: the model requests the same call repeatedly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from holdfast.faults.llm_text import create_call_id, request_calls, require_completion
from holdfast.model.completion import Completion, ToolCall
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class RepeatToolCall:
    """Makes the model request its first tool call again, whatever the result was."""

    traits: ClassVar[FaultTraits] = FaultTraits(wire_only=True, see=("invariants.max_calls",))

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None:
        """Store the first tool calls that the model requested."""
        if isinstance(reply.value, Completion) and reply.value.tool_calls:
            memory.setdefault("calls", reply.value.tool_calls)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        passed = await forward(call)
        reply = require_completion(passed.value, "repeat_tool_call")
        earlier: tuple[ToolCall, ...] | None = ctx.memory.get("calls")
        self.watch(call, passed, ctx.memory)
        current = [(c.name, c.arguments) for c in reply.tool_calls]
        if earlier is None or [(c.name, c.arguments) for c in earlier] == current:
            return passed
        return Reply(request_calls(reply, [replace(c, id=create_call_id(ctx.rng, c.id)) for c in earlier]))
