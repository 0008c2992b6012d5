"""`file_content`: the content of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.patterns import explain_dead_pattern, find_pattern_problem, lint_pattern, search
from holdfast.checks.state.paths import PATH_CODES, PathState, find_unreadable_path, read_path
from holdfast.checks.state.recorded import KEPT, build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.fields import about
from holdfast.reading.file import find_path_problem

_FOLDER = "is a folder, which has no content"


@dataclass(frozen=True)
class FileContent:
    """A file of the workspace meets all given conditions."""

    path: Annotated[str, about("A path in the workspace.", min_length=1, examples=["report.md"])]
    contains: Annotated[str | None, about("Text that must appear.", examples=["Total"])] = None
    not_contains: Annotated[str | None, about("Text that must not appear.")] = None
    pattern: Annotated[str | None, about("A regular expression that must match.")] = None

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="state")
    codes: ClassVar[Mapping[str, str]] = {
        **PATH_CODES,
        "content-as-expected": "The file has the expected content.",
        "content-cut": "The file is longer than the check reads.",
        "content-forbidden": "The file has forbidden content.",
        "content-missing": "The file lacks required content.",
    }

    async def gather(self, world: World, observation: Observation) -> Evidence:
        return build_evidence([self.path, "content"], read_path(world.sandbox, self.path, read=True))

    def decide(self, exhibit: Exhibit) -> Finding:
        place = read_evidence(exhibit, [self.path, "content"], PathState)
        name = shorten(self.path, 60)
        if unreadable := find_unreadable_path(place):
            return unreadable
        if place.kind != "file":
            why = f"{name} {_FOLDER}" if place.kind == "folder" else f"there is no {name}"
            return Finding(False, why, "file-missing", (place.kind,), empty=True)
        excerpt, missing = self._find_violations([place.content, *([place.otherwise] if place.otherwise else [])])
        if excerpt:
            return Finding(False, f"{name} {excerpt}", "content-forbidden")
        if not missing and self.pattern is not None and (never := explain_dead_pattern(self.pattern)):
            return Finding(None, never, "pattern-cannot-match")
        if place.cut and (missing or self.not_contains is not None):
            lacks = f", and in that part {missing}" if missing else ""
            return Finding(None, f"only the first {KEPT} bytes of {name} were read{lacks}", "content-cut")
        if missing:
            return Finding(False, f"{name} {missing}", "content-missing", self._get_failure_key(place.content))
        return Finding(True, f"{name} is as expected", "content-as-expected")

    def _get_failure_key(self, content: str) -> tuple[str, ...]:
        """Return the code of a failure: an empty file, missing text and a missing match are three causes."""
        without_text = self.contains is not None and self.contains not in content
        return ("empty" if not content.strip() else "text" if without_text else "pattern",)

    def _find_violations(self, readings: list[str]) -> tuple[str, str]:
        """Return the forbidden content that is present and the required content that is missing, in any encoding.

        Empty if nothing is.
        """
        excerpt = missing = ""
        if self.not_contains is not None and any(self.not_contains in text for text in readings):
            excerpt = f"contains '{shorten(self.not_contains)}', which must not appear"
        if self.contains is not None and not any(self.contains in text for text in readings):
            missing = f"does not contain '{shorten(self.contains)}'"
        elif self.pattern is not None and not _is_match(self.pattern, readings):
            missing = f"has nothing that matches {shorten(self.pattern)}"
        return excerpt, missing

    def lint(self) -> Iterable[tuple[str, str, str]]:
        return lint_pattern("pattern", self.pattern)

    def problems(self) -> Iterable[tuple[str, str]]:
        yield from find_path_problem(self.path)
        yield from find_pattern_problem("pattern", self.pattern)
        if self.contains is None and self.not_contains is None and self.pattern is None:
            yield "", "needs at least one of contains, not_contains, pattern"


def _is_match(pattern: str, readings: list[str]) -> bool:
    """Return whether the pattern matches; a pattern that can never match does not count against the file."""
    return explain_dead_pattern(pattern) is not None or any(search(pattern, text, "") is not None for text in readings)
