"""`contains`: a text must appear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.patterns import find_folded
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class Contains:
    """The answer contains `value`, case-insensitive."""

    value: Annotated[str, about("The text that must appear; case-insensitive.", examples=["according to"])]

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="text", see=("invariants.contains_any", "invariants.regex")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "text-found": "The text appears.",
        "text-missing": "The text does not appear.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        span = find_folded(exhibit.text, self.value)
        if span is None:
            return Finding(False, f"'{shorten(self.value)}' does not appear", "text-missing")
        return Finding(True, f"found '{shorten(exhibit.text[span[0] : span[1]])}'", "text-found", marks=(span,))

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.value:
            yield "value", "is empty: every answer contains it"
