"""`regex`: a pattern must match somewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.patterns import explain_dead_pattern, find_pattern_error, search
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about

FLAGS = "s"


@dataclass(frozen=True)
class Regex:
    """The pattern matches somewhere in the answer."""

    pattern: Annotated[
        str,
        about(
            "The regular expression; `.` matches line breaks, `(?i)` ignores case.",
            examples=["(?i)source|according to"],
        ),
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="text", see=("invariants.contains", "invariants.excludes_pattern")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "pattern-found": "Something matches the pattern.",
        "pattern-missing": "Nothing matches the pattern.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        span = search(self.pattern, exhibit.text, FLAGS)
        if span is None:
            return Finding(False, f"nothing matches {shorten(self.pattern, 150)}", "pattern-missing")
        excerpt = shorten(exhibit.text[span[0] : span[1]])
        return Finding(True, f"'{excerpt}' matches {shorten(self.pattern)}", "pattern-found", marks=(span,))

    def problems(self) -> Iterable[tuple[str, str]]:
        fault = "is empty: it matches every answer" if not self.pattern else find_pattern_error(self.pattern, FLAGS)
        if fault:
            yield "pattern", fault

    def lint(self) -> Iterable[tuple[str, str, str]]:
        if find_pattern_error(self.pattern, FLAGS):
            return
        if why := explain_dead_pattern(self.pattern):
            yield "lint-never-matches", "pattern", why
        elif search(self.pattern, "", FLAGS) == (0, 0):
            yield "lint-matches-anything", "pattern", "matches the empty text, so it matches every answer"
