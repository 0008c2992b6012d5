"""overloaded: the provider has too many requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.failures import build_failure
from holdfast.faults.llm_text import take_first_tokens
from holdfast.model.completion import Completion, ErrorChunk
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung

_MESSAGE = "the model is overloaded, try again later"
_TOKENS = 5
"""Tokens of a stream before its error: enough that a client has begun to show them."""


@dataclass(frozen=True)
class Overloaded:
    """Fails the call because the provider is overloaded: status 529 or 503, or an error in the stream."""

    shape: Annotated[
        Literal["status", "stream_error"],
        Meta(description="An error status; or, for streams, status 200 and an error after a few tokens."),
    ] = "status"

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.ERROR_ALWAYS, lasting=True, common=True),),
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.shape == "stream_error":
            value = (await forward(call)).value
            if isinstance(value, Completion):
                return Reply(
                    replace(value, deltas=(*take_first_tokens(value, _TOKENS), ErrorChunk("overloaded", _MESSAGE)))
                )
        # A model function has no stream to interrupt: there the call fails.
        raise build_failure(503, f"503 Service Unavailable: {_MESSAGE}", kind="overloaded")
