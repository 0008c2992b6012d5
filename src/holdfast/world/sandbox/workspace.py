"""The common part of all sandbox backends, and the workspace that is a folder of this machine.

Its paths are resolved without ever leaving the workspace, whatever links an agent has made.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path, PurePosixPath
from socket import socket
from typing import NamedTuple, TypeVar

from holdfast.errors import OutsideError, SandboxFailed, UserError
from holdfast.model.capabilities import format_reason, format_remedy
from holdfast.model.world import Isolation
from holdfast.processes.program import BeginProgram, run_to_end
from holdfast.protocols.sandbox import CommandResult, FileChange, SandboxSpec
from holdfast.world.sandbox.differences import is_too_long, open_file
from holdfast.world.supervisors.messages import HOME, WORKSPACE


class OpenSandbox:
    """A sandbox with its own network, whose paths are exactly those of the spec."""

    def __init__(self, sandbox_spec: SandboxSpec, isolation: tuple[Isolation, ...]) -> None:
        self.workspace = WORKSPACE
        self.home = HOME
        self.isolation = isolation
        self._sandbox_spec = sandbox_spec
        self._listeners: dict[tuple[str, int], socket] = {}
        self._frozen = False

    def listener(self, host: str, port: int) -> socket:
        return self._listeners[host, port]

    def address(self, host: str, port: int) -> tuple[str, int]:
        return host, port

    def inside(self, path: str) -> str:
        return path

    async def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 120.0,
        keep: int = 8_000,
        throwaway: bool = False,
    ) -> CommandResult:
        async with self._open_starter(throwaway) as begin:
            return await run_to_end(begin, argv, env, stdin, timeout_s, keep)

    async def open(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def _open_starter(self, throwaway: bool) -> AbstractAsyncContextManager[BeginProgram]:
        """Return the function that starts a Holdfast command inside.

        `throwaway` discards its changes if the backend can.
        """
        raise NotImplementedError

    def _refuse_if_frozen(self) -> None:
        if self._frozen:
            raise SandboxFailed("the sandbox is frozen: nothing can start in it")

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()


class FolderSandbox(OpenSandbox):
    """A sandbox whose workspace and home are folders of this machine: they are copied, and compared file by file."""

    def __init__(self, sandbox_spec: SandboxSpec, isolation: tuple[Isolation, ...], folder: Path) -> None:
        super().__init__(sandbox_spec, isolation)
        self._folder = folder
        self._root = folder / "workspace"
        self._before: list[TreeEntry] = []
        self._copy: Path | None = None
        """The copy that scripts read, once it is made."""

    async def snapshot(self) -> None:
        self._before = await asyncio.to_thread(lambda: [*list_entries(str(self._root))])

    def changes(self) -> Iterator[FileChange]:
        return compare_trees(iter(self._before), list_entries(str(self._root)))

    def find(self, path: str) -> Path | None:
        root = os.open(self._root, os.O_PATH | os.O_DIRECTORY)
        try:
            resolved = resolve(root, self.workspace, path)
        finally:
            os.close(root)
        return None if resolved is None else self._root / resolved

    def view(self) -> Path:
        """Return a copy, made once, so that scripts cannot change the workspace."""
        if self._copy is None:
            copy = self._folder / "view"
            copy_tree(self._root, copy)
            self._copy = copy
        return self._copy

    def home_view(self) -> Path:
        return self._folder / "home"


S = TypeVar("S", bound=OpenSandbox)


async def open_sandbox(sandbox: S) -> S:
    """Open a sandbox, and close it again on failure; raise HarnessError if its workspace cannot be made."""
    try:
        await sandbox.open()
    except BaseException as broken:
        await asyncio.shield(sandbox.close())
        if isinstance(broken, OSError):
            raise SandboxFailed(f"the workspace could not be made: {broken}") from broken
        raise
    return sandbox


def make_unavailable_error(code: str, **values: object) -> UserError:
    """Return the error for a machine on which a backend does not work, with what to do."""
    return UserError(format_reason(code, **values), code=code, hint=format_remedy(code, **values))


def remove(folder: Path) -> None:
    """Remove a folder of an agent, even if the agent removed its own permissions."""
    # Permissions are given back from the top down, because a folder must be readable before its content can be walked.
    # Links are left alone: they may lead out.
    for at, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(at, name)):
                with suppress(OSError):  # owned by another user, or gone: leave it
                    os.chmod(os.path.join(at, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)


_LINKS = 40
"""Maximum number of links to follow, as in the kernel."""


def resolve(root: int, workspace: str, path: str) -> str | None:
    """Resolve all links of a path, relative to the open folder `root`; None if it does not exist.

    `workspace` is the folder's path inside. Raises OutsideError if the path leaves it or is neither a regular file nor
    a folder.
    """
    # The kernel would follow an agent's links out of the workspace. So each part is examined by itself: a link's target
    # is split and put in front of the parts that are left, and nothing is opened before its place is known.
    parts = _split_parts(path, workspace, path)
    done: list[str] = []
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            if not done:
                raise OutsideError(f"{path} is outside the workspace")
            done.pop()
            continue
        status = _read_status(root, "/".join([*done, part]), path)
        if status is None or (parts and not (stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode))):
            return None
        if not stat.S_ISLNK(status.st_mode):
            done.append(part)
            continue
        links += 1
        if links > _LINKS:
            raise OutsideError(f"{path} is a link to itself")
        target = os.readlink("/".join([*done, part]), dir_fd=root)
        parts += _split_parts(target, workspace, path)
        if target.startswith("/"):
            done.clear()
    return _check_type(root, "/".join(done) or ".", path)


def _split_parts(path: str, workspace: str, original: str) -> list[str]:
    """Return the parts of a path, last first; an absolute path must begin with the workspace."""
    parts = PurePosixPath(path).parts
    if path.startswith("/"):
        base = PurePosixPath(workspace).parts
        if parts[: len(base)] != base:
            raise OutsideError(
                f"{original} is not in the workspace" + (f": it is a link to {path}" if path != original else "")
            )
        parts = parts[len(base) :]
    return [*reversed(parts)]


def _read_status(root: int, at: str, original: str) -> os.stat_result | None:
    try:
        return os.stat(at, dir_fd=root, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as refused:
        if refused.errno == errno.ENAMETOOLONG:
            return None
        raise OutsideError(f"{original} cannot be read: {refused.strerror}") from refused
    except ValueError:
        raise OutsideError(f"{original!r} is not a path") from None


def _check_type(root: int, at: str, original: str) -> str:
    status = _read_status(root, at, original)
    if status is not None and not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise OutsideError(f"{original} is neither a regular file nor a folder")
    return at


_CHUNK = 1 << 18


class TreeEntry(NamedTuple):
    """One file, link or empty folder."""

    path: str
    mode: int
    size: int
    digest: bytes


def list_entries(root: str) -> Iterator[TreeEntry]:
    """Yield all entries of a folder, sorted by path, without following links. Only empty folders are listed."""
    waiting = [*_list_names(root, "")]
    while waiting:
        path = waiting.pop()
        status = os.lstat(f"{root}/{path}")
        if not stat.S_ISDIR(status.st_mode):
            yield TreeEntry(path, status.st_mode, status.st_size, _digest(f"{root}/{path}", status.st_mode))
            continue
        below = [] if is_too_long(f"{root}/{path}") else [*_list_names(root, f"{path}/")]
        waiting += below
        if not below:
            yield TreeEntry(path, status.st_mode, 0, b"")


def compare_trees(before: Iterator[TreeEntry], now: Iterator[TreeEntry]) -> Iterator[FileChange]:
    """Yield the differences between two sorted lists."""
    # Both lists are sorted by path, so one pass over both finds every difference, as in a merge of sorted files.
    was, new = next(before, None), next(now, None)
    while was is not None or new is not None:
        if new is None or (was is not None and was.path < new.path):
            assert was is not None
            yield FileChange(_make_printable(was.path), "deleted")
            was = next(before, None)
        elif was is None or new.path < was.path:
            yield FileChange(_make_printable(new.path), "created", new.size)
            new = next(now, None)
        else:
            if was != new:
                yield FileChange(_make_printable(new.path), "modified", new.size)
            was, new = next(before, None), next(now, None)


def copy_tree(source: Path, target: Path) -> None:
    """Copy files, folders and links over existing ones; skip everything else."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=_list_odd_files, copy_function=_copy_file)


def _list_names(root: str, at: str) -> Iterator[str]:
    """Yield the names in a folder, last first; a folder sorts like its contents."""
    try:
        names = os.listdir(f"{root}/{at}")
    except (PermissionError, FileNotFoundError):
        return
    modes = {name: os.lstat(f"{root}/{at}{name}").st_mode for name in names}
    # Both lists must be in the order of complete paths, in which `a-b` comes before `a/x`, because `-` sorts before
    # `/`. So a folder sorts by its name with a slash.
    keys = [(f"{name}/" if stat.S_ISDIR(mode) else name, name) for name, mode in modes.items()]
    yield from (f"{at}{name}" for _, name in sorted(keys, reverse=True))


def _digest(path: str, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(mode):
        return b""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open_file(path) as file:
            while data := file.read(_CHUNK):
                digest.update(data)
    except PermissionError:
        return b"unreadable"
    return digest.digest()


def _list_odd_files(folder: str, names: list[str]) -> set[str]:
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return {n for n, m in modes.items() if not (stat.S_ISREG(m) or stat.S_ISDIR(m) or stat.S_ISLNK(m))}


def _copy_file(source: str, target: str) -> None:
    """Copy a file and replace an existing one instead of writing to it: it may be a link."""
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copy2(source, target, follow_symlinks=False)


def _make_printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
