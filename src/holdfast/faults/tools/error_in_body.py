"""error_in_body: status 200 with an error in the body."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.texts import dump_json
from holdfast.faults.values import change_each_text, choose_fitting
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class ErrorInBody:
    """Makes the call and reports success, but the body says that it failed."""

    message: Annotated[str, Meta(description="The message in the body.")] = "the request could not be processed"
    error_code: Annotated[int, Meta(description="The code in the body.")] = 500

    traits: ClassVar[FaultTraits] = FaultTraits(see=("invariants.claim_matches_state", "invariants.contains_any"))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        body = {"error": {"code": self.error_code, "message": self.message}, "status": "error"}
        if isinstance(reply.value, bytes | bytearray):
            return Reply(type(reply.value)(dump_json(body).encode()))
        value = dump_json(body) if isinstance(reply.value, str) else body
        changes = chain([value], change_each_text(reply.value, lambda text: f"error {self.error_code}: {self.message}"))
        return Reply(choose_fitting(reply.value, changes, ctx))
