"""How often `similarity` is right on labelled pairs: `python tests/quality/text_eval.py [--wrong]`.

`--wrong` lists the mistakes on the tuning halves only: nobody tunes on what is held out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from labelled_answers import labelled_pairs
from rapidfuzz import fuzz

from holdfast.likeness.compare import Method, compare

THRESHOLD = 0.75
SHORT = Path(__file__).parent / "text"
Scorer = Callable[[str, str], float]
SETS = ("long, tuning", "long, held out", "short, tuning", "short, held out")
SCORERS: dict[str, Scorer] = {
    "lexical": lambda a, b: compare(a, b, "lexical").score,
    "semantic": lambda a, b: compare(a, b, "semantic").score,
    "rapidfuzz ratio": lambda a, b: fuzz.ratio(a, b) / 100,
    "rapidfuzz token_set_ratio": lambda a, b: fuzz.token_set_ratio(a, b) / 100,
}


class Errors(NamedTuple):
    """Shares of the pairs that are judged wrongly."""

    false_same: float
    """Of the pairs that differ, those that pass."""
    false_different: float
    """Of the pairs that say the same, those that fail."""


@cache
def pairs(name: str) -> tuple[tuple[str, bool, str, str], ...]:
    """Of one set: id, whether both texts say the same, and the texts."""
    return tuple(_long(name) if name.startswith("long") else _short(name))


def _long(name: str) -> Iterator[tuple[str, bool, str, str]]:
    for pair in labelled_pairs():
        if name.endswith(pair.half):
            yield pair.id, pair.same, pair.expected, pair.actual


def _short(name: str) -> Iterator[tuple[str, bool, str, str]]:
    """One or two sentences in 13 languages; the folder `held` was never tuned on."""
    for path in sorted(SHORT.glob("*/pairs.jsonl")):
        if (path.parent.name == "held") == name.endswith("held out"):
            for line in filter(str.strip, path.read_text("utf-8").splitlines()):
                pair = json.loads(line)
                yield pair["id"], pair["same"], pair["a"], pair["b"]


@cache
def errors(name: str, scorer: str) -> Errors:
    wrong = {True: [0, 0], False: [0, 0]}
    for _, same, a, b in pairs(name):
        wrong[same][0] += (SCORERS[scorer](a, b) >= THRESHOLD) != same
        wrong[same][1] += 1
    return Errors(*(wrong[same][0] / wrong[same][1] for same in (False, True)))


def row(name: str, scorer: str) -> str:
    """A row of the table in docs/checks.md."""
    found = errors(name, scorer)
    return f"| {name} | {len(pairs(name))} | {scorer} | {found.false_same:.0%} | {found.false_different:.0%} |"


def list_wrong(method: Method = "lexical") -> None:
    for name in SETS:
        for pair_id, same, a, b in pairs(name) if name.endswith("tuning") else ():
            found = compare(a, b, method)
            if (found.score >= THRESHOLD) != same:
                print(f"{pair_id} {'same' if same else 'differ'} {found.score:.2f} {found.conflicts[:3]}")


if __name__ == "__main__":
    for name in SETS:
        for scorer in SCORERS:
            print(row(name, scorer))
    if "--wrong" in sys.argv:
        list_wrong()
