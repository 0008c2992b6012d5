"""`file_absent`: the path does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from holdfast.checks.state.paths import PathCheck, PathState
from holdfast.checks.wording import shorten
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class FileAbsent(PathCheck):
    """Nothing exists at a path of the workspace after the agent has ended."""

    path: Annotated[str, about("A path in the workspace.", min_length=1, examples=["secrets.txt"])]

    def decide_place(self, place: PathState) -> Finding:
        if place.kind == "nothing":
            return Finding(True, f"there is no {shorten(self.path)}", "file-missing")
        return Finding(False, f"{shorten(self.path)} exists: a {place.kind}", "file-there", (place.kind,))
