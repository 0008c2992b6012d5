"""overflow: the input hides the question in a flood of text."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.attacks import AttackPlace, insert_paragraph
from holdfast.faults.texts import read_texts
from holdfast.model.shorten import count_tokens, take_tokens
from holdfast.protocols.fault import FaultContext, FaultTraits


@dataclass(frozen=True)
class Overflow:
    """Floods the input with harmless prose."""

    inject_tokens: Annotated[
        int,
        Meta(description="The number of tokens; a word or a punctuation mark is one.", ge=1, le=2_000_000),
    ] = 4000
    inject_at: Annotated[AttackPlace, Meta(description="Where in the input the prose goes.")] = "start"

    traits: ClassVar[FaultTraits] = FaultTraits(
        see=("llm_faults.context_length", "invariants.max_tokens"), standards=("LLM10:2025",)
    )

    def rewrite(self, text: str, ctx: FaultContext) -> str:
        return insert_paragraph(text, _generate_prose(self.inject_tokens, ctx.rng), self.inject_at)


def _generate_prose(tokens: int, rng: Random) -> str:
    """Return exactly this many tokens of sentences in random order."""
    sentences = read_texts("filler")
    sizes = [count_tokens(sentence) for sentence in sentences]
    chosen: list[str] = []
    while tokens > 0:
        at = rng.randrange(len(sentences))
        chosen.append(take_tokens(sentences[at], tokens))
        tokens -= sizes[at]
    return " ".join(chosen)
