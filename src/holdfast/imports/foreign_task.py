"""A task of another benchmark, independent of its format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from holdfast.errors import UserError

LARGEST_TESTS = 5_000_000
LARGEST_FILES = 200_000_000
"""Bytes of a task's tests, which go into one script, and of the files of its environment."""


_LONGEST_ID = 100
GIT = ".git"
DROPPED = frozenset({GIT, "__pycache__"})
"""Folders that are skipped."""


class TaskTests(Struct, frozen=True):
    """The deciding tests, and how they report their result."""

    files: dict[str, bytes]
    """By their path below the folder of tests."""
    script: str
    """The file that bash runs."""
    result: Literal["reward", "pytest"]
    """A number in a file, or pytest's summary."""
    timeout_s: float
    env: dict[str, str] = field(default_factory=dict)


class TaskEgress(Struct, frozen=True):
    """The hosts to which a task's agent may connect."""

    default: Literal["allow", "deny"]
    allow: tuple[str, ...] = ()
    """Hosts that are allowed if nothing else is."""


class ForeignTask(Struct, frozen=True):
    """Everything in a task folder."""

    name: str
    origin: str
    """The format's name."""
    prompt: str
    tests: TaskTests
    dockerfile: Path | None
    context: Path
    """The folder that the Dockerfile's COPY is relative to."""
    hidden: frozenset[str] = frozenset()
    """Names at the top of the context that no agent may see, including the tests and the solution."""
    description: str = ""
    image: str | None = None
    workdir: str | None = None
    agent_timeout_s: float | None = None
    resources: dict[str, int | float | str] = field(default_factory=dict)
    """As in the spec: `cpu`, `memory`, `disk`."""
    env: dict[str, str] = field(default_factory=dict)
    egress: TaskEgress | None = None
    """None: the task says nothing that a spec should open."""
    solution: dict[str, bytes] = field(default_factory=dict)
    """Files of the reference solution; `solve.sh` is run."""
    left_out: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The name as a spec id: lower-case words of letters and digits."""
        return "-".join(re.findall(r"[a-z0-9]+", self.name.lower()))[:_LONGEST_ID].strip("-")

    @property
    def folder(self) -> str:
        """The name of its folder: unchanged, if it is a valid one."""
        return self.name if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", self.name, re.ASCII) else self.id


class InvalidTask(UserError):
    """A task folder that is incomplete or cannot be read."""

    default_code = "task-invalid"


class UnsupportedTask(UserError):
    """A task that needs something which a spec cannot express."""

    default_code = "task-unsupported"


def read_tree(folder: Path, most: int, what: str) -> dict[str, bytes]:
    """Return the files below a folder; raises UserError if they exceed `most` bytes. Links that leave it are
    rejected.
    """
    files: dict[str, bytes] = {}
    size = 0
    for path in walk(folder):
        size += path.stat().st_size
        if size > most:
            raise UnsupportedTask(
                f"{folder}: {what} are more than {most // 1_000_000} MB", hint="move unneeded files out of it"
            )
        files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def walk(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, in order."""
    inside = resolve_path(folder)
    for path in sorted(folder.rglob("*")):
        if not DROPPED.isdisjoint(path.relative_to(folder).parts):
            continue
        if path.is_symlink() and not resolve_path(path).is_relative_to(inside):
            raise InvalidTask(f"{path} is a link to a path outside {folder}", hint="put the file itself there")
        if path.is_symlink() and not path.exists():
            raise InvalidTask(f"{path} is a broken link", hint="remove it, or put the file itself there")
        if path.is_file():
            yield path


def resolve_path(path: Path) -> Path:
    """Return the real path, following links; for a loop of links, the first."""
    return Path(os.path.realpath(path))


def read_text(path: Path) -> str:
    """Return the text of a file; raises UserError if it cannot be read."""
    try:
        if path.stat().st_size > LARGEST_TESTS:
            raise UnsupportedTask(f"{path} is more than {LARGEST_TESTS // 1_000_000} MB")
        return path.read_text(encoding="utf-8")
    except OSError as refused:
        raise InvalidTask(f"cannot read {path}: {refused.strerror}") from refused
    except UnicodeDecodeError as broken:
        raise InvalidTask(f"{path} is not UTF-8 text") from broken


def read_seconds(table: Mapping[str, Any], key: str, default: float, file: Path) -> float:
    """Return a time in seconds, or the format's default."""
    value = table.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10_000_000:
        raise InvalidTask(f"{file}: {key} is not a number of seconds", hint="write a number above 0, such as 600")
    return float(value)


def strip_canary(text: str) -> str:
    """Return the text without a benchmark's canary lines at the top, which are for those who train models."""
    lines = text.splitlines(keepends=True)
    while lines and (re.match(r"\s*(<!--|#).*canary", lines[0], re.IGNORECASE) or not lines[0].strip()):
        lines.pop(0)
    return "".join(lines)
