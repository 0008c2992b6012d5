"""malformed_tool_call: a call whose arguments cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import replace_calls, require_completion
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

_KEPT_FRACTION = 0.7
"""The fraction of the arguments that arrives: names and first values, but not the end."""


@dataclass(frozen=True)
class MalformedToolCall:
    """Makes the arguments of every requested tool call unreadable."""

    shape: Annotated[
        Literal["not_json", "not_object"],
        Meta(description="Cut-off JSON, or JSON text instead of an object."),
    ] = "not_json"

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.MALFORMED, common=True),), wire_only=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = require_completion((await forward(call)).value, "malformed_tool_call")
        return Reply(
            replace_calls(reply, [replace(c, arguments=self._cut_arguments(c.arguments)) for c in reply.tool_calls])
        )

    def _cut_arguments(self, arguments: str) -> str:
        if self.shape == "not_object":
            return json.dumps(arguments)
        cut = arguments[: max(1, int(len(arguments) * _KEPT_FRACTION))]
        return f"{cut}{{" if _is_json(cut) or not cut else cut


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
