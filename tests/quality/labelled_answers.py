"""Labelled pairs of long answers: each answer of `answers/*.yaml`, written again, edited, and changed in one thing.

Half of the answers is held out by a digest of the id, with everything made from them: no rule was tuned on those.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

FOLDER = Path(__file__).parent / "answers"
Half = Literal["tuning", "held out"]


class LabelledPair(NamedTuple):
    """Two answers, and whether they say the same."""

    id: str
    lang: str
    kind: str
    half: Half
    same: bool
    expected: str
    actual: str


def half_of(answer_id: str) -> Half:
    return "held out" if blake2b(answer_id.encode(), digest_size=8).digest()[0] % 2 else "tuning"


@cache
def labelled_pairs() -> tuple[LabelledPair, ...]:
    """All pairs, in the order of the files."""
    entries = [entry for path in sorted(FOLDER.glob("*.yaml")) for entry in yaml.safe_load(path.read_text("utf-8"))]
    return tuple(pair for entry in entries for pair in _pairs_of(entry))


def _pairs_of(entry: dict[str, Any]) -> Iterator[LabelledPair]:
    """The answer with: itself written again, edited, changed; and the first edit with the answer written again."""
    name, first, second = entry["id"], entry["a"], entry["b"]
    made = [("rewritten", True, first, second)]
    for label in ("same", "differ"):
        for kind, base, *edits in entry[label]:
            made.append((kind, label == "same", first, _edited(entry[base], edits, name)))
    made.append(("rewritten and edited", True, _edited(entry[entry["same"][0][1]], entry["same"][0][2:], name), second))
    for number, (kind, same, expected, actual) in enumerate(made):
        yield LabelledPair(f"{name}-{number}", entry["lang"], kind, half_of(name), same, expected, actual)


def _edited(text: str, edits: list[str], name: str) -> str:
    """The text with each old part, which must be there exactly once, replaced by the new one."""
    # All places are found before anything is replaced, so that two values can be exchanged.
    places = []
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"{name}: {old!r} occurs {text.count(old)} times")
        places.append((text.index(old), old, new))
    for at, old, new in sorted(places, reverse=True):
        text = text[:at] + new + text[at + len(old) :]
    return text
