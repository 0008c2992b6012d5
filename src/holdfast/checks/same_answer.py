"""The common part of `similarity` and `behavior_unchanged`: settings, method and the words of the finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta
from msgspec.structs import replace

from holdfast.checks import model_comparison
from holdfast.checks.wording import shorten
from holdfast.likeness import compare as texts
from holdfast.likeness.align import Conflict
from holdfast.likeness.compare import Method, find_missing_packages
from holdfast.model.observation import Observation, Turn
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Ask, Exhibit
from holdfast.reading.fields import about

_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

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


@dataclass(frozen=True, kw_only=True)
class AnswerComparison:
    """Compares each answer with a text; a check says which, and names it in the reason."""

    similarity_threshold: Annotated[
        _Share | None, about("The lowest similarity that passes, 0 to 1, default 0.75.")
    ] = None
    threshold: Annotated[_Share | None, about("Alias of `similarity_threshold`.")] = None
    method: Annotated[
        Method | Literal["model"],
        about("Compare words, compare meanings too (needs the semantic extra), or ask a model."),
    ] = "lexical"
    model: Annotated[str | None, about("For method model: a name in models, provider/name, or a known model.")] = None
    votes: Annotated[
        Annotated[int, Meta(ge=1, le=99)] | None,
        about("For method model: the number of votes, each with two questions; the median counts."),
    ] = None

    traits: ClassVar[CheckTraits]
    codes: ClassVar[Mapping[str, str]] = CODES

    def find_wanted(self, at: int, control: Observation | None) -> str | None:
        """Return the text to compare the answer of a turn with, by its index; None if there is none."""
        raise NotImplementedError

    @property
    def subject(self) -> tuple[str, str, str]:
        """The name of the check, its text as written, and what a reason calls that text."""
        raise NotImplementedError

    def configured(self) -> CheckTraits:
        return replace(self.traits, asks_model=self.method == "model")

    async def consult(
        self, observation: Observation, control: Observation | None, evidence: Evidence, ask: Ask
    ) -> Evidence:
        wanted = (self.find_wanted(at, control) for at in range(len(observation.turns)))
        pairs = [
            (text, turn.text) if text and turn.text else None
            for text, turn in zip(wanted, observation.turns, strict=True)
        ]
        return await model_comparison.compare_turns(pairs, self._question, ask, self.model or "", self.votes or 1)

    def decide(self, exhibit: Exhibit) -> Finding:
        turns, what = exhibit.observation.turns, self.subject[2]
        wanted = self.find_wanted(
            turns.index(exhibit.turn) if exhibit.turn in turns else len(turns) - 1, exhibit.control
        )
        if wanted is None:
            return Finding(None, "the control run gave no answer to compare with", "no-control-answer")
        setting = self.threshold if self.similarity_threshold is None else self.similarity_threshold
        threshold = DEFAULT if setting is None else setting
        if self.method == "model":
            return model_comparison.decide(exhibit, self._question, what, threshold)
        return compare(wanted, exhibit.text, what, threshold, self.method)

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.threshold is not None and self.similarity_threshold is not None:
            yield "threshold", "similarity_threshold says the same: give one of them"
        if self.method == "semantic" and (lacking := find_missing_packages()):
            yield "method", lacking
        if self.method == "model" and not (self.model or "").strip():
            yield (
                "model",
                "is missing, and method: model needs it: give a name in models, provider/name, or a known model",
            )
        used = {"model": self.model, "votes": self.votes} if self.method != "model" else {}
        for field in (name for name, value in used.items() if value is not None):
            yield field, f"is used by method: model only, and the method is {self.method}"

    @property
    def _question(self) -> list[Any]:
        """The settings that the votes depend on, without the threshold, which may change later."""
        return [*self.subject[:2], self.model, self.votes]
