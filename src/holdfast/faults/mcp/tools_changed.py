"""tools_changed: a tool disappears, or renames an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.texts import rename_field
from holdfast.protocols.fault import Call, Failed, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class ToolsChanged:
    """Removes a tool or renames one of its arguments, in the list and for calls."""

    change: Annotated[
        Literal["vanish", "schema"],
        Meta(description="`vanish`: the tool is unknown. `schema`: its first argument is renamed."),
    ] = "vanish"

    traits: ClassVar[FaultTraits] = FaultTraits(on_listings=True, reached="never")

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.change == "vanish":
            raise Failed(f"Unknown tool: {call.target}", kind="tool_gone")
        if call.plane == "mcp_list":
            return _rename_in_list(await forward(call), call, ctx.memory)
        return await forward(_translate(call, ctx.memory))

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None:
        """Store the arguments of a tool from a listing."""
        if call.plane == "mcp_list":
            _rename_in_list(reply, call, memory)


def _rename_in_list(reply: Reply, call: Call, memory: dict[str, Any]) -> Reply:
    """Return the tool with its first argument renamed; unchanged if it cannot be renamed."""
    tool = reply.value
    schema: Any = tool.get("inputSchema") if isinstance(tool, Mapping) else None
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return reply
    old = next(iter(properties))
    new = rename_field(old, list(properties))
    memory[call.target] = (old, new)
    names = {old: new}
    changed = {**schema, "properties": {names.get(name, name): kind for name, kind in properties.items()}}
    if isinstance(schema.get("required"), list):
        changed["required"] = [names.get(name, name) for name in schema["required"]]
    return Reply({**tool, "inputSchema": changed})


def _translate(call: Call, memory: dict[str, Any]) -> Call:
    """Return the call with the server's own argument names; fails if the call does not use the new name."""
    # The listing told the agent the new name, and only the server knows the old one. Without a listing the first
    # argument of the first call is renamed: an agent that knows the tool by heart fails on it.
    if call.target not in memory:
        if not call.arguments:
            return call
        old = next(iter(call.arguments))
        memory[call.target] = (old, rename_field(old, list(call.arguments)))
    old, new = memory[call.target]
    if old in call.arguments:
        raise Failed(f"Invalid arguments for tool {call.target}: {new!r} is required", kind="schema_changed")
    return replace(call, arguments={old if name == new else name: value for name, value in call.arguments.items()})
