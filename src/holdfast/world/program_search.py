"""Finds a user's program on PATH, behind shims that only choose a version.

Some programs update themselves: a stamp tells whether one changed during a run.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from shutil import which
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.model.spec import AgentSpec
from holdfast.reading.program_word import find_program_calls

if TYPE_CHECKING:
    from subprocess import Popen

_ANSWER_S = 10.0
"""Seconds to wait for a version manager: it answers in milliseconds unless it asks the network first."""
_READ_SIZE = 4096
_ANSWER_LIMIT = 65_536
"""Maximum number of bytes of a manager's answer, which is a path."""
_ASDF = re.compile(rb"^exec (\S*asdf) exec ", re.MULTILINE)
_MANAGERS = {"mise": "mise", "rustup": "rustup", "volta-shim": "volta"}
"""The program that a shim links to, and the version manager it belongs to."""
_PYTHON = re.compile(r"python[\d.]*")


class ProgramSearch(Struct, frozen=True):
    """The folders that are searched for a program, in order."""

    path: str
    """The user's PATH, or the one that the spec sets."""
    root: Path
    """The spec's folder: a `.python-version` file there selects the Python."""
    home: Path
    own: Path
    """The folder of Holdfast's own programs: a plain `python` is the one there, unless an environment is active."""
    environ: Mapping[str, str] = {}
    """The user's environment variables, which version managers respect."""
    other_programs: tuple[str, ...] = ()
    """Programs that the setup and checks run, in addition to the agent's."""

    def find(self, name: str) -> str | None:
        """Return the first executable file of that name; None if there is none."""
        program = next(self._search_path(name), None)
        if _PYTHON.fullmatch(name) and (self.own / name).exists() and not (program and _is_in_environment(program)):
            return str(self.own / name)
        if program is None and _is_executable(str(self.own / name)):
            return str(self.own / name)
        return program

    def find_activated(self) -> str | None:
        """Return the environment that the user has activated, if it is on the searched PATH and not Holdfast's own."""
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            folder = self.environ.get(variable, "")
            programs = os.path.join(folder, "bin")
            on_path = programs in self.path.split(os.pathsep)
            if os.path.isabs(folder) and on_path and os.path.realpath(programs) != os.path.realpath(self.own):
                return folder
        return None

    def _search_path(self, name: str) -> Iterator[str]:
        for folder in self.path.split(os.pathsep):
            place = os.path.join(folder or ".", name)
            if not os.path.isabs(folder) or not _is_executable(place):
                continue
            # A shim is a script that asks its manager for the real program. Inside the sandbox neither is there, so it
            # is resolved here: pyenv's from its files, others by asking the manager.
            versions = Path(folder).parent / "versions"
            if os.path.basename(folder.rstrip("/")) == "shims" and versions.is_dir():
                yield from self._find_version(versions, name)
            # Only with a folder of the user's own PATH: a program that only the spec names is never run outside the
            # sandbox.
            elif folder in self.environ.get("PATH", os.defpath).split(os.pathsep) and (
                manager := find_manager(place, self.environ.get("PATH", ""))
            ):
                program = ask_manager(manager, name, self.root, tuple(sorted(self.environ.items())))
                if program is not None and _is_executable(program):
                    yield program
            else:
                yield place

    def _find_version(self, versions: Path, name: str) -> Iterator[str]:
        """Yield the program that a pyenv shim would start, found from the same files."""
        for version in self._list_wanted_versions(versions.parent):
            place = str(versions / version / "bin" / name)
            if _is_executable(place):
                yield place

    def _list_wanted_versions(self, pyenv: Path) -> list[str]:
        if version := self.environ.get("PYENV_VERSION"):
            return version.split(":")
        version_files = [folder / ".python-version" for folder in (self.root, *self.root.parents)]
        for file in (*version_files, pyenv / "version"):
            if file.is_file():
                return file.read_text(errors="replace").split()
        return []


def make_search(
    environ: Mapping[str, str], root: Path, own: Path, path: str | None, other_programs: tuple[str, ...] = ()
) -> ProgramSearch:
    """Build the search for a user with this environment; `path` is the PATH that the spec sets instead."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    search_path = environ.get("PATH", os.defpath) if path is None else path
    return ProgramSearch(search_path, root.resolve(), home, own, environ, other_programs)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_in_environment(program: str) -> bool:
    """Return whether the program belongs to a virtual or conda environment that the user has activated."""
    prefix = Path(program).parent.parent
    return (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir()


def find_manager(shim: str, path: str) -> str | None:
    """Return the version manager of a shim, identified by its link or text; None if it is not a shim."""
    if os.path.islink(shim):
        target = os.path.join(os.path.dirname(shim), os.readlink(shim))
        manager = _MANAGERS.get(os.path.basename(target))
        own = manager is None or os.path.basename(shim) == manager
        return None if own else os.path.join(os.path.dirname(target), manager or "")
    rustup = os.path.join(os.path.dirname(shim), "rustup")
    if os.path.isfile(rustup) and os.path.samefile(shim, rustup):  # older versions make hard links
        return None if os.path.basename(shim) == "rustup" else rustup
    try:
        with open(shim, "rb") as file:
            match = _ASDF.search(file.read(_READ_SIZE))
    except OSError:
        return None
    if match is None:
        return None
    return which(os.fsdecode(match[1]), path=path)


@cache
def ask_manager(manager: str, name: str, root: Path, environ: tuple[tuple[str, str], ...]) -> str | None:
    """Ask a version manager which program it would start in that folder; return None if it knows none."""
    try:
        with subprocess.Popen(  # noqa: S603 (the user's own manager, asked as its shim would ask it)
            [manager, "which", name],
            cwd=root,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            answer = _read_output(process)
    except OSError:
        return None
    place = next((line.strip() for line in reversed(os.fsdecode(answer).split("\n")) if line.strip()), "")
    return place if os.path.isabs(place) else None


def _read_output(process: Popen[bytes]) -> bytes:
    """Return the output of the command, if it succeeds in time and is short; the process is killed in any case."""
    assert process.stdout is not None, "it has a pipe"
    # The manager is the user's own program and may ask the network, or wait for input. It gets a moment, and its whole
    # group is killed afterwards.
    output, until = b"", monotonic() + _ANSWER_S
    try:
        while (
            len(output) <= _ANSWER_LIMIT and select.select([process.stdout], [], [], max(0.0, until - monotonic()))[0]
        ):
            data = os.read(process.stdout.fileno(), _READ_SIZE)
            if not data:
                return output if process.wait(max(0.0, until - monotonic())) == 0 else b""
            output += data
        return b""
    except subprocess.TimeoutExpired:
        return b""
    finally:
        if process.returncode is None:  # kills the process and its children
            os.killpg(process.pid, signal.SIGKILL)


_Stamp = tuple[str, int, int, int]
"""The real path of a program and its inode, size and modification time."""


class ProgramStamps:
    """The stamps of the programs that an agent's section names, taken now."""

    def __init__(self, agent: AgentSpec, search: ProgramSearch) -> None:
        calls = [] if agent.command is None else find_program_calls(agent.command)
        words = [word for call in calls for word in (call.program, call.script or "")]
        paths = [self._find_path(word, search) for word in (*words, agent.binary or "") if word]
        self._stamps = {path: stamp for path in paths if path and (stamp := _read_stamp(path)) is not None}

    def list_changed(self) -> tuple[str, ...]:
        """Return the programs that have changed since."""
        return tuple(path for path, stamp in self._stamps.items() if _read_stamp(path) != stamp)

    def _find_path(self, word: str, search: ProgramSearch) -> str | None:
        if "/" in word or (search.root / word).is_file():
            return os.path.join(search.root, re.sub(r"^~(?=/)", str(search.home), word))
        return search.find(word)


def _read_stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return os.path.realpath(path), status.st_ino, status.st_size, status.st_mtime_ns
