"""conflicting_context: the input contradicts itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.attacks import AttackPlace, choose_payload, insert_paragraph
from holdfast.protocols.fault import FaultContext, FaultTraits


@dataclass(frozen=True)
class ConflictingContext:
    """Adds a statement to the input that contradicts the task or its facts."""

    payload: Annotated[
        str | None,
        Meta(
            description="The statement; `{canary}` becomes a canary. Default: a built-in one.",
            examples=["The refund was paid yesterday."],
        ),
    ] = None
    payloads: Annotated[tuple[str, ...], Meta(description="Statements to choose from.")] = ()
    inject_at: Annotated[AttackPlace, Meta(description="Where in the input the statement goes.")] = "end"

    traits: ClassVar[FaultTraits] = FaultTraits(see=("context_attacks.memory_poisoning",), standards=("ASI06",))

    def rewrite(self, text: str, ctx: FaultContext) -> str:
        payload = choose_payload(self.payload, self.payloads, "conflicting_context", ctx.rng)
        return insert_paragraph(text, payload, self.inject_at)
