"""error_as_result: an error that looks like a result."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from msgspec import Meta

from holdfast.faults.values import change_each_text, choose_fitting
from holdfast.protocols.fault import Call, Failed, FaultContext, Forward, Reply


@dataclass(frozen=True)
class ErrorAsResult:
    """Makes the call and returns an error as a normal result."""

    message: Annotated[str, Meta(description="The text of the result if the server reported no error.")] = (
        "Error executing tool: internal error"
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        try:
            reply = await forward(call)
        except Failed as failed:
            return Reply(str(failed))
        changes = chain([self.message], change_each_text(reply.value, lambda text: self.message))
        return Reply(choose_fitting(reply.value, changes, ctx))
