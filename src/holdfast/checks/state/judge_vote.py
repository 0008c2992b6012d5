"""Parses a judge's reply strictly: one JSON object with a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from holdfast.checks.json_parts import parse
from holdfast.checks.wording import shorten
from holdfast.model.codec import make_encodable

REASON_KEPT = 2_000
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


class Vote(Struct, frozen=True, omit_defaults=True):
    """One rating."""

    score: float
    passed: bool | None = None
    """The model's own verdict: stored, never counted."""
    reason: str = ""


def parse_vote(text: str) -> Vote:
    """Return the rating in a reply; raises ValueError with the reason if there is none.

    The object must be the complete reply, at most in a code fence: one inside prose may be quoted from the input.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        reply = parse(fenced[1] if fenced else text, unique=True)
    except ValueError as bad:
        raise ValueError(
            f"its reply is not a JSON object ({shorten(str(bad), 60)}): '{shorten(text.strip())}'"
        ) from bad
    if not isinstance(reply, dict):
        raise ValueError(f"its reply is not a JSON object: '{shorten(text.strip())}'")
    passed, reason = reply.get("passed"), reply.get("reason")
    return Vote(
        _parse_score(reply.get("score")),
        passed if isinstance(passed, bool) else None,
        make_encodable(reason)[:REASON_KEPT] if isinstance(reason, str) else "",
    )


def is_vote(text: str) -> bool:
    """Whether a reply can be parsed."""
    try:
        parse_vote(text)
    except ValueError:
        return False
    return True


def _parse_score(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"its score is not a number from 0 to 1: {shorten(repr(value))}")
    return float(value)


def find_median_vote(votes: Sequence[Vote]) -> tuple[float, Vote]:
    """Return the median of the scores, and the vote nearest to it."""
    score = median([vote.score for vote in votes])
    return score, min(votes, key=lambda vote: abs(vote.score - score))
