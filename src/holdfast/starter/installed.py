"""Which version of a recipe's program or library is here, by the files of its package: nothing is started."""

from __future__ import annotations

import json
import re
from pathlib import Path

from holdfast.starter.recipe import Recipe


def found_version(recipe: Recipe) -> str | None:
    """Its version; empty where it is there and the version cannot be told; None where it is not there."""
    if not recipe.program:
        return _library(recipe.package)
    import os
    import sys

    from holdfast.world.program_search import search_of
    from holdfast.world.shown_programs import behind_pnpm_shim

    path = search_of(os.environ, Path.cwd(), Path(sys.executable).parent, None).find(recipe.program)
    if path is None:
        return None
    real = Path(behind_pnpm_shim(path) or path).resolve()
    return _npm(real, recipe.package) if recipe.npm else _venv(real, recipe.package)


def _library(package: str) -> str | None:
    """Python agents run on the Python that Holdfast is installed in."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_bare(package))
    except PackageNotFoundError:
        return None


def _npm(program: Path, package: str) -> str:
    for folder in program.parents:
        about = folder / "package.json"
        if about.is_file():
            try:
                said = json.loads(about.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return ""
            if isinstance(said, dict) and said.get("name") == package:
                return str(said.get("version", ""))
    return ""


def _venv(program: Path, package: str) -> str:
    name = re.sub(r"[-_.]+", "_", _bare(package))
    for folder in program.parent.parent.glob("lib/python3*/site-packages"):
        for entry in folder.glob("*.dist-info"):
            found, _, version = entry.name.removesuffix(".dist-info").partition("-")
            if re.sub(r"[-_.]+", "_", found).lower() == name.lower():
                return version
    return ""


def _bare(package: str) -> str:
    """Without extras and limits."""
    return re.split(r"[\[<>=!~ ]", package)[0]
