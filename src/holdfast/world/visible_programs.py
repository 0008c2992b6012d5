"""Finds the paths of this machine that a sandbox must show read-only to run the user's programs.

These are a program's own package and its interpreter, never the folder around them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from holdfast.world.program_search import ProgramSearch
from holdfast.world.sandbox.system import is_in_system, list_links, select_mounts

_OURS = str(Path(__file__).parents[2])
"""Holdfast's own folder, which no agent needs, even if `pip install -e` puts it in the agent's environment."""
_DEPTH = 8
"""Maximum depth of interpreters of interpreters: more than any program has."""
_FIRST_LINE = 4096
_JAVASCRIPT = (".js", ".mjs", ".cjs")
_MODULES = "node_modules"
_PNPM_SHIM = re.compile(r"""^ *exec [^\n]*\$basedir(?:_abs)?"?/'?([^'"\n]+)['"] +"\$@"$""", re.MULTILINE)
"""How pnpm's scripts start the real program."""
_PNPM_SHIM_READ = 65536
_RUST_LIBRARY = "lib/rustlib"
"""The folder of a Rust toolchain without which its programs do not run."""
_PNPM_STORE = re.compile(r"(.*?/(?:\.pnpm|store/v\d+/links))/")
"""pnpm's package store: each package reaches its dependencies by links to its neighbours."""


class VisiblePrograms(Struct, frozen=True):
    """The paths to show for the programs of a command."""

    visible: Mapping[str, Path] = {}
    links: Mapping[str, str] = {}
    """Links to them, by path."""
    folders: tuple[str, ...] = ()
    """Folders to search for programs inside, before all others."""
    variables: Mapping[str, str] = {}
    withheld: tuple[str, ...] = ()
    """Folders that a program needs but that would show too much: the user's home, the spec."""

    beyond: tuple[str, ...] = ()
    """Folders outside an environment that it reads, as left by `pip install -e`."""

    def list_notes(self) -> tuple[str, ...]:
        """Return notes for the reader."""
        visible = (f"folders of its programs that the agent sees, read-only: {', '.join(sorted(self.visible))}",)
        withheld = [
            f"{folder} is hidden from the agent's program: it contains your home folder or the spec"
            for folder in self.withheld
        ]
        beyond_notes = [
            f"{path} is not visible to the agent, although an environment uses it; agent.dir: {path} makes it visible"
            for path in self.beyond
        ]
        return (*(visible if self.visible else ()), *withheld, *beyond_notes)


NO_PROGRAMS = VisiblePrograms()


class ProgramFiles:
    """Collects the files that programs need."""

    def __init__(self, search: ProgramSearch) -> None:
        self._search = search
        self._paths: dict[str, None] = {}
        self._links: dict[str, str] = {}
        self._folders: dict[str, None] = {}
        self._variables: dict[str, str] = {}
        self._withheld: dict[str, None] = {}
        self._beyond: dict[str, None] = {}

    def add_by_name(self, name: str, depth: int = 0) -> None:
        """Add a program by its name on PATH, if it is there."""
        path = name if os.path.isabs(name) else self._search.find(name)
        if path:
            self._folders[os.path.dirname(path)] = None
            self.add_program(path, depth=depth)

    def add_environment(self, folder: str) -> None:
        """Add a complete environment, whose programs come before all others."""
        self._folders[os.path.join(folder, "bin")] = None
        self._add_environment_files(folder)

    def add_program(self, path: str, *, itself: bool = True, depth: int = 0) -> None:
        """Add everything that the program at a path needs; `itself` includes the file."""
        if depth > _DEPTH or not os.path.isfile(path):
            return
        places = [os.path.abspath(path)]
        # Programs find their package by following links to themselves, so the links must exist inside, with the same
        # targets.
        for at, target, target_path in list_links(path):
            if not is_in_system(at):
                self._links[at] = target
            places.append(os.path.abspath(target_path))
        shebang = _read_shebang(places[-1])
        self._add_package(places, itself, shebang)
        if shebang:
            self._add_interpreter(shebang, depth + 1)
        if _get_interpreter_name(shebang) == "sh" and (target := find_pnpm_target(places[-1])):
            self._add_pnpm(target)
            self.add_program(target, depth=depth + 1)

    def is_packaged(self, path: str) -> bool:
        """Return whether a program is part of an environment or package and needs it to run."""
        places = [path, *[target_path for _, _, target_path in list_links(path)]]
        return any(_find_environment(place) or _MODULES in Path(place).parts for place in places)

    def build_visible(self) -> VisiblePrograms:
        outside = [path for path in self._paths if not is_in_system(os.path.realpath(path)) or not is_in_system(path)]
        visible = {place: real for place, real in select_mounts(outside).items() if not is_in_system(place)}
        beyond = tuple(
            folder
            for folder in self._beyond
            if not (is_in_system(folder) or any(map(Path(folder).is_relative_to, (*visible, _OURS))))
        )
        withheld = tuple(self._withheld)
        return VisiblePrograms(visible, self._links, tuple(self._folders), self._variables, withheld, beyond)

    # -- packages -----------------------------------------------------------------------------------
    def _add_package(self, places: Sequence[str], itself: bool, shebang: Sequence[str]) -> None:
        real = places[-1]
        if itself:
            self._paths[real] = None
        environment = next((folder for place in places if (folder := _find_environment(place))), "")
        prefix = os.path.dirname(os.path.dirname(real))
        if environment:
            self._add_environment_files(environment)
        elif (_is_prefix(prefix) and not is_in_system(real)) or os.path.isdir(os.path.join(prefix, _RUST_LIBRARY)):
            self._show(prefix)
        elif _get_interpreter_name(shebang).startswith("python"):
            self._add_user_site(prefix)
        if _MODULES in Path(real).parts:
            self._show(_find_modules(real))
        elif real.endswith(_JAVASCRIPT) or _get_interpreter_name(shebang) == "node":
            self._add_javascript(Path(real).parent)

    def _add_environment_files(self, folder: str) -> None:
        """Add a virtual environment and the Python that it was made from."""
        self._show(folder)
        self._beyond |= dict.fromkeys(_list_added_paths(folder))
        base = os.path.join(folder, "bin", "python")
        for at, target, _ in list_links(base):
            if not is_in_system(at):
                self._links[at] = target
        made_from = os.path.dirname(_read_home(os.path.join(folder, "pyvenv.cfg")))
        for prefix in (made_from, os.path.dirname(os.path.dirname(os.path.realpath(base)))):
            if _is_prefix(prefix) and not is_in_system(prefix):
                self._show(prefix)

    def _add_user_site(self, base: str) -> None:
        """Add packages installed with `pip install --user`; a variable names them, as HOME differs inside."""
        folders = [str(path) for path in Path(base).glob("lib/python3*/site-packages")]
        if folders and not is_in_system(base):
            self._paths |= dict.fromkeys(folders)
            self._variables["PYTHONUSERBASE"] = base

    def _add_pnpm(self, target: str) -> None:
        """Add the packages around a pnpm program, and the folder that its script names."""
        for place in (target, *[target_path for _, _, target_path in list_links(target)]):
            path = os.path.abspath(place)
            if store := _PNPM_STORE.match(path):
                self._show(store[1])
            if _MODULES in Path(path).parts:
                self._show(_find_modules(path))

    def _add_javascript(self, folder: Path) -> None:
        """Add the package of a script outside node_modules, as left by `npm link`, and the modules above it."""
        above = (folder, *folder.parents)
        own = next((candidate for candidate in above if (candidate / "package.json").is_file()), None)
        if own is None or is_in_system(str(own)):
            return
        self._show(str(own))
        for candidate in (own, *own.parents):
            if (candidate / _MODULES).is_dir():
                self._show(str(candidate / _MODULES))
                return

    def _show(self, folder: str) -> None:
        real = Path(os.path.realpath(folder))
        if any(private.is_relative_to(real) for private in (self._search.home.resolve(), self._search.root)):
            self._withheld[folder] = None
        else:
            self._paths[folder] = None

    # -- interpreters -------------------------------------------------------------------------------
    def _add_interpreter(self, shebang: Sequence[str], depth: int) -> None:
        program = shebang[0]
        if os.path.basename(program) != "env":
            self.add_program(program, depth=depth)
            return
        self.add_by_name(
            next((word for word in shebang[1:] if not word.startswith("-") and "=" not in word), ""), depth
        )


def _read_shebang(path: str) -> list[str]:
    """Return the words of a script's first line; empty for a binary."""
    try:
        with open(path, "rb") as file:
            line = file.read(_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return []
    return os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []


def _get_interpreter_name(shebang: Sequence[str]) -> str:
    """Return the name of the interpreter."""
    if not shebang:
        return ""
    plain = [word for word in shebang[1:] if not word.startswith("-") and "=" not in word]
    program = plain[0] if os.path.basename(shebang[0]) == "env" and plain else shebang[0]
    return os.path.basename(program)


def find_pnpm_target(script: str) -> str:
    """Return the program that a pnpm script starts; empty if it is not such a script."""
    try:
        with open(script, "rb") as file:
            text = file.read(_PNPM_SHIM_READ).decode("utf-8", "replace")
    except OSError:
        return ""
    paths = _PNPM_SHIM.findall(text)
    return os.path.normpath(os.path.join(os.path.dirname(script), paths[-1])) if paths else ""


def _find_modules(path: str) -> str:
    """Return the topmost node_modules that contains the path."""
    parts = Path(path).parts
    return str(Path(*parts[: parts.index(_MODULES) + 1]))


def _find_environment(program: str) -> str:
    """Return the virtual environment that contains a program; empty if none does."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(program)))
    return folder if os.path.isfile(os.path.join(folder, "pyvenv.cfg")) else ""


def _read_home(config: str) -> str:
    """Return the folder of an environment's base Python, from its configuration."""
    try:
        lines = Path(config).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    homes = [value.strip() for key, _, value in (line.partition("=") for line in lines) if key.strip() == "home"]
    return homes[0] if homes else ""


def _list_added_paths(environment: str) -> Iterator[str]:
    """Yield the folders that the `.pth` files of an environment add to its modules."""
    for file in Path(environment).glob("lib/python3*/site-packages/*.pth"):
        for line in file.read_text(errors="replace").splitlines():
            if os.path.isabs(line.strip()) and os.path.isdir(line.strip()):
                yield line.strip()


def _is_prefix(folder: str) -> bool:
    """Return whether a Python with its library is installed there."""
    return bool(folder) and any(Path(folder).glob("lib/python3*/os.py"))
