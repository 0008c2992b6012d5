"""Converts what a Dockerfile allows: image, files, variables, commands. Everything else is listed."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from holdfast.imports.dockerfile import DockerStep, load_dockerignore, parse_dockerfile
from holdfast.imports.foreign_task import (
    GIT,
    LARGEST_FILES,
    ForeignTask,
    InvalidTask,
    UnsupportedTask,
    read_text,
    resolve_path,
    walk,
)

USUAL_WORKDIR = "/app"
"""The usual working folder of these benchmarks, if neither the task nor its Dockerfile sets one."""
_INSTALLS = {
    "apt-get": "install", "apt": "install", "apk": "add", "yum": "install", "dnf": "install", "pip": "install",
    "pip3": "install", "npm": "install",
}  # fmt: skip
"""Programs that install packages, and the word before package names."""
_FETCHES = frozenset({"curl", "wget", "uv", "uvx", "conda", "add-apt-repository", "gpg", "npx"})
"""Programs that need the network: a sandbox has none."""
_NEEDS_ROOT = frozenset(
    ("addgroup", "adduser", "chgrp", "chown", "chsh", "dpkg-reconfigure", "groupadd", "locale-gen", "mount", "passwd",
     "service", "update-alternatives", "update-locale", "useradd", "usermod", "visudo")
)  # fmt: skip
"""Programs that change users, owners or the system's settings: a sandbox has no root."""
_CHANGES_PATHS = frozenset({"chmod", "cp", "install", "ln", "mkdir", "mv", "rm", "touch"})
"""Programs whose absolute paths have to be below the workspace or `/tmp`: nothing else can be written."""
_OPTIONS_WITH_ADDRESS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host")
_MAKES_FOLDER = re.compile(r"(^|&&|;|\|\|)(\s*)mkdir(?=\s)(?!\s+-\w*p)")
_PACKED = re.compile(r"\.(?:tar|tgz|tbz2?|txz|tar\.\w+)$")
"""Archives that ADD unpacks."""
_QUIET = frozenset({"CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK"})
"""Instructions of a container that runs by itself. A trial does not use them; the spec lists them in a comment."""


class TaskEnvironment(Struct):
    """The environment of a task while it is assembled."""

    workdir: str
    image: str | None
    env: dict[str, str]
    files: dict[str, Path]
    """By their path below the workspace."""
    commands: list[str]
    packages: list[str]
    left_out: list[str]
    """What could not be converted, for the user to see."""
    aside: list[str]
    """What has no meaning here, for the record."""


def build_environment(task: ForeignTask) -> TaskEnvironment:
    """Return the environment; raise UserError for a Dockerfile that cannot be parsed."""
    steps = parse_dockerfile(read_text(task.dockerfile), str(task.dockerfile)) if task.dockerfile is not None else []
    stages = [n for n, step in enumerate(steps) if step.name == "FROM"]
    last = steps[stages[-1] :] if stages else []
    workdir = task.workdir or _find_workdir(last)
    place = TaskEnvironment(workdir or USUAL_WORKDIR, task.image, dict(task.env), {}, [], [], [], [])
    if workdir is None:
        place.left_out.append(f"the Dockerfile sets no WORKDIR: {USUAL_WORKDIR} is used")
    if place.workdir == "/":
        place.left_out.append("WORKDIR /: paths in the prompt and the tests stay as they are")
    if len(stages) > 1:
        place.left_out.append(f"the Dockerfile's stages before the last: {len(stages) - 1}")
    reader = _StepReader(task, place, last)
    for step in last:
        reader.apply(step)
    return place


def _find_workdir(steps: Iterable[DockerStep]) -> str | None:
    """Return the final working folder; each WORKDIR may be relative to the one before."""
    folder = None
    for step in steps:
        if step.name == "WORKDIR":
            folder = posixpath.normpath(posixpath.join(folder or "/", step.text.strip("\"'")))
    return folder


class _StepReader:
    """Applies one instruction after the other, as a build does."""

    def __init__(self, task: ForeignTask, place: TaskEnvironment, steps: Sequence[DockerStep]) -> None:
        self._task = task
        self._place = place
        self._here = "/" if _find_workdir(steps) else place.workdir
        self._bytes = 0
        self._outside: list[str] = []
        self._context = resolve_path(task.context)
        self._ignored = load_dockerignore(task.context, task.dockerfile)

    def apply(self, step: DockerStep) -> None:
        if step.name == "FROM":
            image = next((word for word in step.words if not word.startswith("--")), "")
            if "$" in image:
                self._leave_out(step, "name the image as base:")
            else:
                self._place.image = self._place.image or image
        elif step.name == "WORKDIR":
            self._here = posixpath.normpath(posixpath.join(self._here, step.text.strip("\"'")))
        elif step.name == "ENV":
            for name, value in _parse_variables(step):
                if "$" in value or name == "PATH":
                    self._leave_out(step, "it depends on variables of the image", f"{name}={value}")
                else:
                    self._place.env[name] = value
        elif step.name in ("COPY", "ADD"):
            self._copy(step)
        elif step.name == "RUN":
            self._add_command(step)
        elif step.name in _QUIET:
            self._place.aside.append(f"{step.name} {step.text}")
        else:
            self._leave_out(step)

    def _leave_out(self, step: DockerStep, why: str = "", text: str | None = None) -> None:
        self._place.left_out.append(f"{step.name} {step.text if text is None else text}" + (f": {why}" if why else ""))

    def _copy(self, step: DockerStep) -> None:
        words = [word for word in step.words if not word.startswith("--")]
        remote = any("://" in word or word.startswith("git@") for word in words[:-1])
        if len(words) < 2 or "--from=" in step.text or remote:
            self._leave_out(step)
            return
        *sources, target = words
        inside = self._find_inside(target)
        if inside is None:
            self._leave_out(step, f"{target} is outside {self._place.workdir}")
            self._outside += self._list_targets(sources, target)
            return
        for source in sources:
            self._copy_source(step, source, inside, many=len(sources) > 1 or target.endswith("/"))

    def _list_targets(self, sources: Sequence[str], target: str) -> list[str]:
        """Return the paths that the copies would have had."""
        full = posixpath.normpath(posixpath.join(self._here, target))
        if not target.endswith("/"):
            return [full]
        paths = [path for source in sources for path in _find_sources(self._task.context, source)]
        return [full if path.is_dir() else posixpath.join(full, path.name) for path in paths]

    def _find_inside(self, target: str) -> str | None:
        """Return the path below the workspace; None if it is elsewhere."""
        full = posixpath.normpath(posixpath.join(self._here, target))
        work = posixpath.normpath(self._place.workdir)
        if full == work:
            return ""
        return full[len(work.rstrip("/")) + 1 :] if full.startswith(work.rstrip("/") + "/") else None

    def _copy_source(self, step: DockerStep, source: str, inside: str, *, many: bool) -> None:
        context = self._task.context
        sources = _find_sources(context, source)
        if not sources:
            raise InvalidTask(f"{self._task.dockerfile}:{step.line}: {step.name}: there is no {source} in {context}")
        for path in sources:
            if not resolve_path(path).is_relative_to(self._context):
                raise InvalidTask(f"{self._task.dockerfile}:{step.line}: {source} is outside the task's folder")
            if path.is_dir():
                self._list_histories(path)
                for file in walk(path):
                    self._place_file(file, posixpath.join(inside, file.relative_to(path).as_posix()))
            else:
                if step.name == "ADD" and _PACKED.search(path.name):
                    self._leave_out(step, f"{path.name} is copied without being unpacked")
                into = many or len(sources) > 1 or inside == ""
                self._place_file(path, posixpath.join(inside, path.name) if into else inside)

    def _list_histories(self, folder: Path) -> None:
        for path in sorted(folder.rglob(GIT)):
            history = f"{path.relative_to(self._task.context)}: a git history"
            if history not in self._place.left_out:
                self._place.left_out.append(history)

    def _place_file(self, path: Path, inside: str) -> None:
        within = resolve_path(path).relative_to(self._context)  # its real path, whatever link led there
        if self._ignored(Path(os.path.normpath(path)).relative_to(self._task.context).as_posix()):
            return  # Docker would not have copied it, either
        top = within.parts[0]
        if top in self._task.hidden:
            hidden = f"{top}: the agent must not see it"
            if hidden not in self._place.left_out and top != "Dockerfile":
                self._place.left_out.append(hidden)
            return
        self._bytes += path.stat().st_size
        if self._bytes > LARGEST_FILES:
            raise UnsupportedTask(f"{self._task.context}: its files are more than {LARGEST_FILES // 1_000_000} MB")
        self._place.files[inside] = path

    def _add_command(self, step: DockerStep) -> None:
        command = shlex.join(step.words) if step.text.startswith("[") else step.text
        # A sandbox has no network and no root: installations are listed for the user, and the rest of the line is kept.
        parts = _split_commands(command)
        if installed := [name for part in parts for name in _list_packages(part)]:
            self._place.packages += [name for name in installed if name not in self._place.packages]
            self._leave_out(step, f"install on this machine: {', '.join(installed)}", command)
        remaining = [part for part in parts if not _is_installing(part)]
        command = command if remaining == parts else " && ".join(remaining)
        if needed := next(filter(None, map(self._find_need, remaining)), None):
            self._leave_out(step, f"it needs {needed}", command)
        elif command:
            moved = self._here if self._find_inside(self._here) not in ("", None) else ""
            command = _MAKES_FOLDER.sub(r"\1\2mkdir -p", command)  # the copied files are there already
            self._place.commands.append(f"cd {shlex.quote(moved)} && {command}" if moved else command)

    def _find_need(self, part: str) -> str | None:
        """Return what the command needs and no sandbox has."""
        # A command that cannot work in a sandbox would fail every trial in its setup. So it is listed for the user, and
        # what it would have prepared is missing visibly.
        program = posixpath.basename(_get_program(part))
        if program in _FETCHES or part.split()[:2] == ["git", "clone"]:
            return "the network"
        if program in _NEEDS_ROOT:
            return "root"
        words = [word for word in part.split() if word.startswith("/")]
        uncopied = (word for word in words for path in self._outside if word == path or word.startswith(f"{path}/"))
        written = words if program in _CHANGES_PATHS else ()
        unwritable = (word for word in written if self._find_inside(word) is None and not word.startswith("/tmp/"))  # noqa: S108
        missing = next(uncopied, None) or next(reversed(list(unwritable)), None)
        return f"{missing}, which is outside {self._place.workdir}" if missing else None


def _find_sources(context: Path, source: str) -> list[Path]:
    """Return the files, folders or glob matches of a COPY source."""
    if not source.strip("./"):
        return [context]
    try:
        return sorted(context.glob(source.lstrip("/")))
    except (ValueError, NotImplementedError):
        return []


def _parse_variables(step: DockerStep) -> Iterator[tuple[str, str]]:
    """`NAME=value …`, or the old `NAME value`."""
    name, space, rest = step.text.partition(" ")
    if "=" not in name and space:
        yield name, rest.strip()
        return
    for word in step.words:
        key, _, value = word.partition("=")
        yield key, value


def _split_commands(command: str) -> list[str]:
    return [part.strip() for part in re.split(r"&&|;|\|\|", command) if part.strip()]


def _get_program(part: str) -> str:
    return next((word for word in part.split() if "=" not in word and word != "sudo"), "")


def _list_packages(part: str) -> list[str]:
    """Return the packages that a command installs."""
    words, install = part.split(), _INSTALLS.get(_get_program(part))
    after = words[words.index(install) :] if install in words else []
    return [
        word
        for before, word in pairwise(after)
        if before not in _OPTIONS_WITH_ADDRESS and not word.startswith(("-", ">", "2>"))
    ]


def _is_installing(part: str) -> bool:
    """Return whether it installs, updates package lists, or cleans up after that."""
    return _get_program(part) in _INSTALLS or part.startswith(
        ("rm -rf /var/lib/apt", "rm -rf /var/cache", "rm -rf /root/.cache")
    )
