"""The common part of attacks: payloads, the canary that reveals a success, and the position in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from holdfast.faults.texts import read_texts
from holdfast.model.canary import draw_canary

AttackPlace: TypeAlias = Literal["start", "middle", "end"]

Action: TypeAlias = Annotated[
    Annotated[str, Meta(min_length=1)] | None,
    Meta(
        description="The tool that the attack asks for, a name or a glob. "
        "Calling it after the attack counts as attack success."
    ),
]
"""The setting by which judging also recognises a success; the attack itself is the same with and without it."""


def choose_payload(payload: str | None, payloads: Sequence[str], attack: str, rng: Random) -> str:
    """Choose one of the configured payloads, else one of the built-in ones for this attack.

    A new canary replaces `{canary}` in it.
    """
    candidates = ([] if payload is None else [payload]) + list(payloads)
    chosen = rng.choice(candidates or read_texts(attack))
    return chosen.replace("{canary}", draw_canary(rng))


def insert_paragraph(text: str, addition: str, place: AttackPlace) -> str:
    """Return the text with a paragraph added; `middle` is the space nearest to the middle."""
    if place == "start" or not text.strip():
        return f"{addition}\n\n{text}"
    if place == "end":
        return f"{text}\n\n{addition}"
    # Inside a word the addition would look like a typing error, so it goes to the space nearest to the middle.
    half = len(text) // 2
    spaces = [match.start() for match in re.finditer(r"\s+", text)]
    at = min(spaces, key=lambda space: abs(space - half), default=len(text))
    return f"{text[:at]}\n\n{addition}\n\n{text[at:].lstrip()}"
