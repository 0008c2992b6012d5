"""The folder of one keeper: small, short (a Unix socket's path has 107 characters), named after its owner's process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from itertools import count
from pathlib import Path

from holdfast.world.services.confinement import User, give, reachable

PREFIX = "holdfast-services-"
_NAME = re.compile(re.escape(PREFIX) + r"(\d+)-.+")
_MEMORY = Path("/dev/shm")  # noqa: S108  # in memory, and there for all users
_LONGEST = 50
"""Characters of a folder that a socket's path still fits below, with the longest numbers of process and port."""


class SocketFolder:
    """Where the servers of one service have their sockets. Nobody but us and their user can look inside."""

    def __init__(self, folder: Path, user: User | None) -> None:
        self._user = user
        self._numbers = count(1)
        parent = folder if len(str(folder)) <= _LONGEST and reachable(folder, user) else place()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
        self.path.chmod(0o711)

    def socket_folder(self) -> Path:
        """A new folder that belongs to the servers' user alone."""
        socket_folder = self.path / str(next(self._numbers))
        socket_folder.mkdir(mode=0o700)
        give(socket_folder, self._user)
        return socket_folder

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def place() -> Path:
    """Where folders of ours are made that other users can reach."""
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK | os.X_OK)
    return _MEMORY if usable else Path(tempfile.gettempdir())


def sweep() -> list[Path]:
    """Removes the folders whose owner's process is gone: a killed run left them; which."""
    swept = []
    for parent in {place(), Path(tempfile.gettempdir())}:
        for path in parent.glob(PREFIX + "*"):
            named = _NAME.fullmatch(path.name)
            if named and not _alive(int(named[1])) and _ours(path):
                shutil.rmtree(path, ignore_errors=True)
                swept.append(path)
    return sorted(path for path in swept if not path.exists())


def _ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:  # somebody else sweeps, too
        return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
