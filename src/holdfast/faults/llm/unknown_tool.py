"""unknown_tool: a call of a tool that does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.llm_text import create_call_id, request_calls, require_completion
from holdfast.model.completion import ToolCall
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

_INVENTED = ToolCall("", "lookup_records", "{}")


@dataclass(frozen=True)
class UnknownTool:
    """Makes the model request a tool that does not exist."""

    tool: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="The tool's name. Default: the requested tool plus `_v2`, otherwise lookup_records.",
            examples=["lookup_records"],
        ),
    ] = None

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.MALFORMED),), wire_only=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = require_completion((await forward(call)).value, "unknown_tool")
        wanted = next(iter(reply.tool_calls), _INVENTED)
        known = [*call.arguments.get("tools", ()), *(tool_call.name for tool_call in reply.tool_calls)]
        name = self.tool or wanted.name
        while not self.tool and name in known:
            name += "_v2"
        return Reply(request_calls(reply, [ToolCall(wanted.id or create_call_id(ctx.rng), name, wanted.arguments)]))
