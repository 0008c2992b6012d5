"""wrong_args: a call with bad arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import replace_calls, require_completion
from holdfast.faults.texts import dump_json, parse_json, rename_field
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

Kind: TypeAlias = Literal["missing", "renamed", "retyped"]


@dataclass(frozen=True)
class WrongArgs:
    """Makes the model request the right tool with an argument missing, renamed or retyped.

    A call without arguments gets one that the tool does not know. No effect if the model requests no tool.
    """

    kinds: Annotated[
        tuple[Kind, ...],
        Meta(description="What may be wrong, chosen at random. Default: all.", examples=[["missing"]]),
    ] = ()

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.WRONG_VALUE),), wire_only=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = require_completion((await forward(call)).value, "wrong_args")
        calls = [replace(c, arguments=self._change_arguments(c.arguments, ctx.rng)) for c in reply.tool_calls]
        return Reply(replace_calls(reply, calls))

    def _change_arguments(self, arguments: str, rng: Random) -> str:
        data = parse_json(arguments or "{}")
        if not isinstance(data, dict):
            return arguments
        if not data:
            return dump_json({"unexpected": True})
        kind = rng.choice(self.kinds or get_args(Kind))
        return dump_json(_break_argument(data, rng.choice(list(data)), kind))


def _break_argument(data: Mapping[str, Any], name: str, kind: Kind) -> dict[str, Any]:
    if kind == "missing":
        return {key: part for key, part in data.items() if key != name}
    if kind == "renamed":
        return {rename_field(key, data) if key == name else key: part for key, part in data.items()}
    # A record never fits a scalar, and text never fits a record or list: not even a lenient reader accepts it.
    part = data[name]
    return {**data, name: "unknown" if isinstance(part, dict | list) else {"value": part}}
