"""`contains_any`: one of several texts must appear."""

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
class ContainsAny:
    """The answer contains at least one of `values`, case-insensitive."""

    values: Annotated[
        tuple[str, ...],
        about(
            "At least one of these texts must appear; case-insensitive.",
            examples=[["not available", "cannot see"]],
        ),
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="text", see=("invariants.contains", "invariants.regex")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "text-found": "The text appears.",
        "text-missing": "The text does not appear.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        for value in self.values:
            span = find_folded(exhibit.text, value)
            if span is not None:
                return Finding(True, f"found '{shorten(exhibit.text[span[0] : span[1]])}'", "text-found", marks=(span,))
        return Finding(False, f"none of these appears: {shorten(', '.join(self.values), 150)}", "text-missing")

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.values:
            yield "values", "needs at least one text to look for"
        if any(not value for value in self.values):
            yield "values", "contains an empty text, which every answer contains"
