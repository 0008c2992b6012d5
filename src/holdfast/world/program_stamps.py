"""Whether an agent's programs are at the end of a run what they were at its beginning: some update themselves."""

from __future__ import annotations

import os
import re

from holdfast.model.spec import AgentSpec
from holdfast.reading.program_word import program_calls
from holdfast.world.program_search import ProgramSearch

_Stamp = tuple[str, int, int, int]
"""Where a path really leads, and the file there: its number, its size, when it was written."""


class ProgramStamps:
    """The programs that a section names, as they are now."""

    def __init__(self, agent: AgentSpec, search: ProgramSearch) -> None:
        calls = [] if agent.command is None else program_calls(agent.command)
        named = [word for call in calls for word in (call.program, call.script or "")]
        paths = [_path(word, search) for word in (*named, agent.binary or "")]
        self._stamps = {path: stamp for path in paths if path and (stamp := _stamp(path)) is not None}

    def changed(self) -> tuple[str, ...]:
        """Those that are others by now."""
        return tuple(path for path, stamp in self._stamps.items() if _stamp(path) != stamp)


def _path(word: str, search: ProgramSearch) -> str | None:
    if not word or "/" in word or (search.root / word).is_file():
        return os.path.join(search.root, re.sub(r"^~(?=/)", str(search.home), word)) if word else None
    return search.find(word)


def _stamp(path: str) -> _Stamp | None:
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return os.path.realpath(path), about.st_ino, about.st_size, about.st_mtime_ns
