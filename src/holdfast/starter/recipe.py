"""The recipes of `holdfast init --from`: one folder each, with a recipe.yaml and the files that are written."""

from __future__ import annotations

import json
import os
import re
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
    """What is known of a published agent: where it comes from, and with which version the recipe was tried."""

    title: str
    program: str = ""
    """The word that starts it; empty for a library, whose agent is one of the files."""
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    """What is installed, from one of the two registries. The first is what a project is known by."""
    version: str
    tried: date
    """The version that it was tried with, and the day."""
    speaks: str = "openai"
    """The provider in whose format it asks its model; empty where it has none."""
    run: str = "holdfast run"
    note: str = ""
    """What is special about it, in a line."""
    found: Mapping[str, str]
    """Scenario to pass or fail, as that version did."""

    @property
    def package(self) -> str:
        return (self.npm or self.pip)[0]

    @property
    def install(self) -> str:
        """The line to type."""
        from shlex import quote

        words = " ".join(map(quote, self.npm or self.pip))
        return f"npm install -g {words}" if self.npm else f"pip install {words}"


def list_names() -> list[str]:
    return sorted(entry.name for entry in _get_home().iterdir() if entry.joinpath(_ABOUT).is_file())


@cache
def read_recipe(name: str) -> Recipe:
    """Return the recipe of that name; UsageError with the near miss and all names where there is none."""
    import yaml

    from holdfast.reading.words import find_near_name

    known = list_names()
    if name not in known:
        miss = find_near_name(name, known)
        meant = f"did you mean {miss}? " if miss else ""
        raise UsageError(
            f"there is no recipe {name!r}", code="recipe-unknown", hint=f"{meant}Available: {', '.join(known)}"
        )
    found = yaml.safe_load((_get_home() / name / _ABOUT).read_text(encoding="utf-8"))
    return msgspec.convert(found, Recipe)


def read_files(name: str) -> dict[str, bytes]:
    """Return the files that are written, by their path."""
    return dict(sorted(_read_below(_get_home() / name, "")))


def _read_below(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            found += _read_below(entry, f"{path}{entry.name}/")
        elif entry.is_file() and path + entry.name != _ABOUT:
            found.append((path + entry.name, entry.read_bytes()))
    return found


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
            found, _, version = entry.name.removesuffix(".dist-info").partition("-")
            if re.sub(r"[-_.]+", "_", found).lower() == name.lower():
                return version
    return ""


def _strip_limits(package: str) -> str:
    """Without extras and limits."""
    return re.split(r"[\[<>=!~ ]", package)[0]
