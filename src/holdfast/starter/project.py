"""Which recipes fit a project, by the packages that its own files name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.starter.recipe import read_recipe, recipe_names

_WORD = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def fitting_recipes(folder: Path) -> list[str]:
    """Names of recipes whose package the project depends on; files that cannot be read name none."""
    pip, npm = set(_python_packages(folder)), set(_node_packages(folder))
    if not pip and not npm:
        return []
    known = {name: read_recipe(name) for name in recipe_names()}
    return [
        name
        for name, recipe in known.items()
        if (recipe.npm and recipe.npm[0] in npm) or (recipe.pip and _plain(recipe.pip[0]) in pip)
    ]


def _python_packages(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("requirements*.txt")):
        yield from _named(_text(path).splitlines())
    try:
        found = tomllib.loads(_text(folder / "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return
    project, poetry = _map(found, "project"), _map(found, "tool", "poetry")
    yield from _named(project.get("dependencies"))
    for group in (*_map(project, "optional-dependencies").values(), *_map(found, "dependency-groups").values()):
        yield from _named(group)
    for section in (poetry, *(_map(poetry, "group", name) for name in _map(poetry, "group"))):
        yield from _named(list(_map(section, "dependencies")))


def _node_packages(folder: Path) -> Iterator[str]:
    try:
        found = json.loads(_text(folder / "package.json") or "{}")
    except ValueError:
        return
    for section in ("dependencies", "devDependencies"):
        yield from _map(found, section)


def _named(lines: Any) -> Iterator[str]:
    for line in lines if isinstance(lines, list) else ():
        word = _WORD.match(line) if isinstance(line, str) else None
        if word:
            yield _plain(word[1])


def _plain(package: str) -> str:
    """As the registry compares names: without extras and limits, in one spelling."""
    bare = re.split(r"[\[<>=!~; ]", package)[0]
    return re.sub(r"[-_.]+", "-", bare).lower()


def _map(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
