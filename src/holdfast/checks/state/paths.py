"""Looks at a path of the workspace."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from msgspec import Struct

from holdfast.checks.state.recorded import KEPT, build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.errors import OutsideError
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import Sandbox
from holdfast.protocols.world import World
from holdfast.reading.file import find_path_problem


class PathState(Struct, frozen=True, omit_defaults=True):
    """The state of a path when the agent had ended."""

    kind: Literal["file", "folder", "nothing", "dangling link", "out_of_reach", "outside"]
    why: str = ""
    """Why it cannot be read, or which link of the agent leaves the workspace."""
    content: str = ""
    otherwise: str = ""
    """The content decoded with the other likely encoding; text searches look in both."""
    cut: bool = False
    """Whether the content was cut at the limit."""


def read_path(sandbox: Sandbox, path: str, *, read: bool = False) -> PathState:
    """Return what exists there; with `read` also a file's content.

    Whatever an agent can do to a path gives a value, not an exception.
    """
    try:
        host_path = sandbox.find(path)
        if host_path is None:
            # What a link leads to may be missing, but the link itself is there.
            at = PurePosixPath(path)
            folder = sandbox.find(str(at.parent))
            return PathState("dangling link" if folder and (folder / at.name).is_symlink() else "nothing")
        if host_path.is_dir():
            return PathState("folder")
        if not read:
            return PathState("file")
        with host_path.open("rb") as file:
            data = file.read(KEPT + 1)
    except OutsideError as left:
        return PathState("outside", str(left))
    except OSError as refused:
        return PathState("out_of_reach", f"{path} cannot be read: {refused.strerror}")
    return PathState(
        "file",
        content=data[:KEPT].decode("utf-8", "replace"),
        otherwise=_decode_otherwise(data[:KEPT]),
        cut=len(data) > KEPT,
    )


PATH_CODES: Mapping[str, str] = {
    "file-missing": "The file does not exist.",
    "file-there": "The file exists.",
    "path-outside": "The path leads out of the workspace.",
    "path-unreadable": "The path cannot be read.",
}


def find_unreadable_path(place: PathState) -> Finding | None:
    """Return the finding of every file check for a path that cannot be looked at; None if it can.

    A link that the agent made to leave the workspace fails even a negated rule; an unreadable path proves nothing.
    """
    if place.kind == "outside":
        return Finding(False, shorten(place.why, 200), "path-outside", either_way=True)
    if place.kind == "out_of_reach":
        return Finding(False, shorten(place.why, 200), "path-unreadable", empty=True)
    return None


@dataclass(frozen=True)
class PathCheck:
    """The common part of checks on a path's existence; each says what the state of the path means."""

    path: str

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="state")
    codes: ClassVar[Mapping[str, str]] = PATH_CODES

    async def gather(self, world: World, observation: Observation) -> Evidence:
        return build_evidence([self.path], read_path(world.sandbox, self.path))

    def decide(self, exhibit: Exhibit) -> Finding:
        place = read_evidence(exhibit, [self.path], PathState)
        return find_unreadable_path(place) or self.decide_place(place)

    def decide_place(self, place: PathState) -> Finding:
        raise NotImplementedError

    def problems(self) -> Iterable[tuple[str, str]]:
        return find_path_problem(self.path)


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _decode_otherwise(data: bytes) -> str:
    """Decode by the byte order mark, or as UTF-16 if every other byte is 0; empty otherwise."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    for half, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = data[half::2].count(0)
        if len(data) >= 4 and zeros * 4 > len(data) and data[1 - half :: 2].count(0) * 8 < zeros:
            return data.decode(encoding, "replace")
    return ""
