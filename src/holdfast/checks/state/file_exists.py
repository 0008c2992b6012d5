"""`file_exists`: the path exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from holdfast.checks.state.paths import PathCheck, PathState
from holdfast.checks.wording import shorten
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class FileExists(PathCheck):
    """A file or folder exists at a path of the workspace after the agent has ended."""

    path: Annotated[str, about("A path in the workspace.", min_length=1, examples=["report.md"])]

    def decide_place(self, place: PathState) -> Finding:
        exists = place.kind in ("file", "folder")
        what = f"{shorten(self.path)} exists" if exists else f"there is no {shorten(self.path)}"
        code = "file-there" if exists else "file-missing"
        return Finding(exists, what + (", a folder" if place.kind == "folder" else ""), code)
