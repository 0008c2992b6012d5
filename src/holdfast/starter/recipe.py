"""The recipes of `holdfast init --from`: one folder each, with a recipe.yaml and the files that are written."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.errors import UsageError

_ABOUT = "recipe.yaml"


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts about a published agent: its source, and the version with which the recipe was tried."""

    title: str
    program: str = ""
    """The word that starts it; empty for a library, whose agent is one of the files."""
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    """The packages to install, from one of the two registries. The first gives the project its name."""
    version: str
    tried: date
    """The version that it was tried with, and the day."""
    speaks: str = "openai"
    """The provider whose format it uses for its model; empty if it asks none."""
    run: str = "holdfast run"
    note: str = ""
    """A peculiarity of the agent, on one line."""
    found: Mapping[str, str]
    """The result of each scenario with that version: pass or fail."""

    @property
    def package(self) -> str:
        return (self.npm or self.pip)[0]

    @property
    def install(self) -> str:
        """The command that installs it."""
        words = " ".join(map(shlex.quote, self.npm or self.pip))
        return f"npm install -g {words}" if self.npm else f"pip install {words}"


def list_names() -> list[str]:
    return sorted(entry.name for entry in _get_home().iterdir() if entry.joinpath(_ABOUT).is_file())


@cache
def read_recipe(name: str) -> Recipe:
    """Return the recipe of that name; raise UsageError with a suggestion and all names if there is none."""
    import yaml

    from holdfast.reading.words import find_near_name

    known = list_names()
    if name not in known:
        near = find_near_name(name, known)
        suggestion = f"did you mean {near}? " if near else ""
        hint = f"{suggestion}Available: {', '.join(known)}"
        raise UsageError(f"there is no recipe {name!r}", code="recipe-unknown", hint=hint)
    return msgspec.convert(yaml.safe_load((_get_home() / name / _ABOUT).read_text(encoding="utf-8")), Recipe)


def read_files(name: str) -> dict[str, bytes]:
    """Return the files of the recipe by path."""
    return dict(sorted(_read_below(_get_home() / name, "")))


def _read_below(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    contents: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            contents += _read_below(entry, f"{path}{entry.name}/")
        elif entry.is_file() and path + entry.name != _ABOUT:
            contents.append((path + entry.name, entry.read_bytes()))
    return contents


def _get_home() -> Traversable:
    return files("holdfast.starter") / "recipes"


# -- installed -------------------------------------------------------------------------------------
def find_version(recipe: Recipe) -> str | None:
    """Return its version; empty if the version is unknown, None if it is not installed."""
    if not recipe.program:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(_strip_limits(recipe.package))
        except PackageNotFoundError:
            return None
    from holdfast.world.program_search import make_search
    from holdfast.world.visible_programs import find_pnpm_target

    path = make_search(os.environ, Path.cwd(), Path(sys.executable).parent, None).find(recipe.program)
    if path is None:
        return None
    real = Path(find_pnpm_target(path) or path).resolve()
    return _find_npm_version(real, recipe.package) if recipe.npm else _find_venv_version(real, recipe.package)


def _find_npm_version(program: Path, package: str) -> str:
    for folder in program.parents:
        package_file = folder / "package.json"
        if package_file.is_file():
            try:
                package_json = json.loads(package_file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return ""
            if isinstance(package_json, dict) and package_json.get("name") == package:
                return str(package_json.get("version", ""))
    return ""


def _find_venv_version(program: Path, package: str) -> str:
    name = re.sub(r"[-_.]+", "_", _strip_limits(package))
    for folder in program.parent.parent.glob("lib/python3*/site-packages"):
        for entry in folder.glob("*.dist-info"):
            installed, _, version = entry.name.removesuffix(".dist-info").partition("-")
            if re.sub(r"[-_.]+", "_", installed).lower() == name.lower():
                return version
    return ""


def _strip_limits(package: str) -> str:
    """Return the name of a package without extras and version limits."""
    return re.split(r"[\[<>=!~ ]", package)[0]
