"""The common part of `similarity` and `behavior_unchanged`: threshold, method and the words of the finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from holdfast.checks.wording import shorten
from holdfast.likeness import compare as texts
from holdfast.likeness.align import Conflict
from holdfast.likeness.compare import Method, find_missing_packages
from holdfast.model.observation import Turn
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about

_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

Threshold: TypeAlias = Annotated[_Share | None, about("The lowest similarity that passes, 0 to 1, default 0.75.")]
ShortThreshold: TypeAlias = Annotated[_Share | None, about("Alias of `similarity_threshold`.")]
By: TypeAlias = Annotated[
    Method | Literal["model"],
    about("Compare words, compare meanings too (needs the semantic extra), or ask a model."),
]
AskedModel: TypeAlias = Annotated[
    str | None, about("For method model: a name in models, provider/name, or a known model.")
]
Votes: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1, le=99)] | None,
    about("For method model: the number of votes, each with two questions; the median counts."),
]

DEFAULT = 0.75
_LISTED, _SHOWN = 5, 200
"""How many conflicts the details list, and how many characters of each text."""
CODES: Mapping[str, str] = {
    "answer-alike": "The answer says the same as the expected text.",
    "answer-differs": "The answer differs from the expected text.",
}


def has_same_answers(before: Sequence[Turn], turns: Sequence[Turn]) -> bool:
    """Return whether each turn has the answer that it had before.

    `turns` may be the same conversation several times.
    """
    return bool(before) and all(
        calm.ending == "answered" and _is_same(calm.text or "", turn.text or "")
        for calm, turn in zip(cycle(before), turns, strict=False)
    )


def _is_same(before: str, after: str) -> bool:
    return before == after or bool(compare(before, after, "before", DEFAULT, "lexical").passed)


def compare(wanted: str, actual: str, what: str, threshold: float, method: Method) -> Finding:
    """Decide whether `actual` is the same answer as `wanted`; `what` names the wanted text in the reason."""
    likeness = texts.compare(wanted, actual, method)
    details: dict[str, Any] = {"method": method, "similarity": round(likeness.score, 4), "threshold": threshold}
    if likeness.conflicts:
        details["differs"] = [
            {"code": c.code, "expected": shorten(c.expected, _SHOWN), "actual": shorten(c.actual, _SHOWN)}
            for c in likeness.conflicts[:_LISTED]
        ]
    how = f"{likeness.score:.2f} similar to {what} ({method}, needs {threshold:g})"
    # A conflict has already set the score to 0, so the threshold alone decides and a named conflict always fails.
    if likeness.score >= threshold - 1e-9:
        return Finding(True, how, "answer-alike", details=details)
    why = f": {shorten('; '.join(map(_describe, likeness.conflicts[:_LISTED])), 100)}" if likeness.conflicts else ""
    kinds = tuple(dict.fromkeys(conflict.code for conflict in likeness.conflicts))
    return Finding(False, f"only {how}{why}", "answer-differs", kinds[:1], details=details)


def _describe(conflict: Conflict) -> str:
    """Return a conflict in words: `5 g became 5 mg`."""
    expected, actual = shorten(conflict.expected, 60), shorten(conflict.actual, 60)
    if expected and actual:
        return f"{expected} became {actual}" if conflict.code != "negation" else f"negation: {expected} / {actual}"
    return f"{expected} is missing" if expected else f"{actual} was added"


def get_threshold(threshold: float | None, similarity_threshold: float | None) -> float:
    """Return whichever of the two is set, otherwise the default."""
    setting = similarity_threshold if similarity_threshold is not None else threshold
    return DEFAULT if setting is None else setting


def find_problems(
    threshold: float | None, similarity_threshold: float | None, method: str, model: str | None, votes: int | None
) -> Iterable[tuple[str, str]]:
    """Yield the problems of the settings that both checks have."""
    if threshold is not None and similarity_threshold is not None:
        yield "threshold", "similarity_threshold says the same: give one of them"
    if method == "semantic" and (lacking := find_missing_packages()):
        yield "method", lacking
    if method == "model" and not (model or "").strip():
        yield "model", "is missing, and method: model needs it: give a name in models, provider/name, or a known model"
    if method != "model":
        for field in (name for name, value in (("model", model), ("votes", votes)) if value is not None):
            yield field, f"is used by method: model only, and the method is {method}"
