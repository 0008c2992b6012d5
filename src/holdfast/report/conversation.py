"""A conversation of several turns, a line a turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.model.observation import Turn
from holdfast.report.safe import one_line

SHOWN = 12
"""Turns that are listed; the one that decided is always there."""
ROOM = 200
"""Characters of what was asked, and of what was answered."""


def conversation(turns: Sequence[Turn], *, decided: int = -1, told: str = "") -> Iterator[tuple[str, str]]:
    """Of each turn its name, and what was asked and came back; of the one that decided, `told` as its answer."""
    shown = [n for n in range(len(turns)) if n < SHOWN - 1 or n in (decided, len(turns) - 1)]
    before = -1
    for n in shown:
        if n - before > 1:
            yield "…", f"({n - before - 1} turns are left out)"
        answer = told if n == decided and told else answer_of(turns[n])
        yield f"turn {n + 1}", f"{_brief(turns[n].asked)} → {answer}"
        before = n


def answer_of(turn: Turn) -> str:
    """What came back on one line, or the ending that stood in its place."""
    ending = "" if turn.ending == "answered" else f"({turn.ending}{': ' + turn.detail if turn.detail else ''})"
    said = " ".join(part for part in (_brief(turn.text or ""), one_line(ending)) if part)
    return said or "(nothing: the answer is empty)"


def _brief(text: str) -> str:
    return one_line(text[:ROOM]) + (" …" if len(text) > ROOM else "")
