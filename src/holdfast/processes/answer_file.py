"""The file in which a command leaves its answer: inside its folder, a regular file, of bounded size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import AgentUnavailable
from holdfast.protocols.world import Left


class FolderAnswerFile:
    """`agent.answer_file`, checked against the folder it must be in."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = os.path.realpath(root)
        self._path = os.path.normpath(os.path.join(self._root, name))
        if not self._inside(self._path) or self._path == self._root:
            raise AgentUnavailable(
                f"agent.answer_file leaves the spec's folder: {name!r}",
                hint="name a file in that folder, such as answer.txt",
                config=True,
            )
        self.name = name

    def clear(self) -> None:
        """Removes what an earlier run has left; a link is removed, never what it points to."""
        if not self._inside(os.path.realpath(os.path.dirname(self._path))):
            return  # the agent made its folder a link to elsewhere: reading it will say so
        try:
            os.unlink(self._path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return  # a folder of that name stays: reading it will say so
        except OSError as broken:
            why = broken.strerror or str(broken)
            raise AgentUnavailable(
                f"agent.answer_file {self.name!r} cannot be replaced: {why}", config=True
            ) from broken

    def read(self, limit: int) -> Left:
        """What is there now. Call it when every process of the agent has ended."""
        real = os.path.realpath(self._path)
        if not self._inside(real):
            return Left(refused=f"{self.name} is a link that leaves the folder")
        return read_left(real, self.name, limit)

    def _inside(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root.rstrip(os.sep) + os.sep)


def read_left(path: str | Path, name: str, limit: int) -> Left:
    """What a regular file holds, whatever the agent has made of it; its links are followed by now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Left(absent=True)
    except OSError as broken:
        return Left(refused=f"{name} cannot be read: {broken.strerror}")
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return Left(refused=f"{name} is not a regular file")
    with os.fdopen(fd, "rb") as file:
        data = file.read(limit + 1)
    return Left(data[:limit], cut=len(data) > limit)
