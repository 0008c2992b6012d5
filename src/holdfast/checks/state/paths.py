"""What is found at a path of the workspace."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from holdfast.checks.state.recorded import KEPT
from holdfast.errors import OutsideError
from holdfast.protocols import Sandbox


class PathFound(Struct, frozen=True, omit_defaults=True):
    """A path as it was when the agent had ended."""

    kind: Literal["file", "folder", "nothing", "out_of_reach"]
    why: str = ""
    """Why it is out of reach: a link that leaves the workspace, for example."""
    content: str = ""
    cut: bool = False
    """Our limit cut the content."""


def look(sandbox: Sandbox, path: str, *, read: bool = False) -> PathFound:
    """What is there; with `read` a file's content, too. What an agent can do to a path is told, not raised."""
    try:
        found = sandbox.find(path)
        if found is None:
            return PathFound("nothing")
        if found.is_dir():
            return PathFound("folder")
        if not read:
            return PathFound("file")
        with found.open("rb") as file:
            data = file.read(KEPT + 1)
    except OutsideError as left:
        return PathFound("out_of_reach", str(left))
    except OSError as refused:
        return PathFound("out_of_reach", f"{path} cannot be read: {refused.strerror}")
    return PathFound("file", content=data[:KEPT].decode("utf-8", "replace"), cut=len(data) > KEPT)
