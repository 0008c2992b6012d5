"""The commit of a folder, read from git's own files; git itself reports uncommitted changes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_MOST = 4 << 20
"""Bytes of a file that are read: git's files are small, even a list of 40,000 refs."""
_LINKS = 5
"""How many times a ref may point to another one, as in git."""


_GIT_S = 5.0
"""Seconds for git to examine all files: a large repository takes one."""


class GitCommit(Struct, frozen=True):
    """The commit and branch of a folder; each is empty if unknown."""

    commit: str = ""
    branch: str = ""


def find_commit(folder: Path) -> GitCommit:
    """Return the commit and branch of the folder's repository; both empty if there is none."""
    try:
        own = _find_git_folder(folder.absolute())
        return GitCommit() if own is None else _read_head(own)
    except (OSError, ValueError):  # a repository that git cannot read is not Holdfast's to fix
        return GitCommit()


def is_dirty(folder: Path, files: Sequence[str]) -> bool:
    """Return whether tracked files differ from the commit, or one of these files is not in it.

    False if git is missing, refuses or takes too long.
    """
    changed = _run_git(folder, "status", "--porcelain", "--untracked-files=no")
    return bool(changed or (files and _run_git(folder, "ls-files", "--others", "--", *files)))


def _run_git(folder: Path, *words: str) -> str:
    """Return the output of git; empty if it fails. It takes no lock and starts no file watcher in the repository."""
    # Variables such as GIT_DIR would make git look at another repository than the one whose commit was read.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *words)
    try:
        ran = subprocess.run(  # noqa: S603  # our own words, and names of files behind --
            command, env=env, capture_output=True, timeout=_GIT_S, stdin=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.decode("utf-8", "replace")


def get_repository_path(path: Path) -> str:
    """Return the path of a file in its git repository; empty if it is in none."""
    top = next((folder for folder in path.parents if os.path.exists(folder / ".git")), None)
    return path.relative_to(top).as_posix() if top is not None else ""


def _find_git_folder(folder: Path) -> Path | None:
    """Return the `.git` of the nearest folder above that has one; in a worktree, the folder that the file names."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if os.path.isdir(git):
            return git if os.path.isfile(git / "HEAD") else None
        if os.path.isfile(git):
            key, _, path = _read_text(git).partition(":")
            return place / path.strip() if key == "gitdir" else None
    return None


def _read_head(own: Path) -> GitCommit:
    text = _read_text(own / "HEAD").strip()
    if not text.startswith("ref:"):
        return GitCommit(_check_commit(text))
    name = text.removeprefix("ref:").strip()
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    commit = _resolve_ref(own, _find_common_folder(own), name)
    return GitCommit(commit, branch if commit and branch.isprintable() else "")


def _find_common_folder(own: Path) -> Path:
    """Return the folder with the refs of all worktrees."""
    pointer = own / "commondir"
    return own / _read_text(pointer).strip() if os.path.isfile(pointer) else own


def _resolve_ref(own: Path, common: Path, name: str) -> str:
    """Return the commit of a ref; a loose ref comes before a packed one."""
    for _ in range(_LINKS):
        if not name.startswith("refs/") or ".." in name.split("/"):
            return ""
        loose = next((place / name for place in (own, common) if os.path.isfile(place / name)), None)
        if loose is None:
            return _find_packed_ref(common / "packed-refs", name)
        text = _read_text(loose).strip()
        if not text.startswith("ref:"):
            return _check_commit(text)
        name = text.removeprefix("ref:").strip()
    return ""


def _find_packed_ref(path: Path, name: str) -> str:
    if os.path.isfile(path):
        for line in _read_text(path).splitlines():
            commit, _, of = line.partition(" ")
            if of == name:
                return _check_commit(commit)
    return ""


def _check_commit(text: str) -> str:
    return text if re.fullmatch(_COMMIT, text) else ""


def _read_text(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST).decode("utf-8")
