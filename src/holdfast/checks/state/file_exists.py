"""`file_exists`: the path exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.state.paths import PATH_CODES, PathState, find_unreadable_path, read_path
from holdfast.checks.state.recorded import build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.fields import about
from holdfast.reading.file import find_path_problem


@dataclass(frozen=True)
class FileExists:
    """A file or folder exists at a path of the workspace after the agent has ended."""

    path: Annotated[str, about("A path in the workspace.", min_length=1, examples=["report.md"])]

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="state")
    codes: ClassVar[Mapping[str, str]] = PATH_CODES

    async def gather(self, world: World, observation: Observation) -> Evidence:
        return build_evidence([self.path], read_path(world.sandbox, self.path))

    def decide(self, exhibit: Exhibit) -> Finding:
        place = read_evidence(exhibit, [self.path], PathState)
        if away := find_unreadable_path(place):
            return away
        there = place.kind in ("file", "folder")
        what = f"{shorten(self.path)} is there" if there else f"there is no {shorten(self.path)}"
        code = "file-there" if there else "file-missing"
        return Finding(there, what + (", a folder" if place.kind == "folder" else ""), code)

    def problems(self) -> Iterable[tuple[str, str]]:
        return find_path_problem(self.path)
