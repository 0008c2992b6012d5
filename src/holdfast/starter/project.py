"""Which recipes fit a project, by the packages that its own files name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.starter.recipe import list_names, read_recipe

_WORD = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def find_recipes(folder: Path) -> list[str]:
    """Names of recipes whose package the project depends on; files that cannot be read name none."""
    pip, npm = set(_list_python_packages(folder)), set(_list_node_packages(folder))
    if not pip and not npm:
        return []
    known = {name: read_recipe(name) for name in list_names()}
    return [
        name
        for name, recipe in known.items()
        if (recipe.npm and recipe.npm[0] in npm) or (recipe.pip and _normalize_name(recipe.pip[0]) in pip)
    ]


def _list_python_packages(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("requirements*.txt")):
        yield from _parse_names(_read_text(path).splitlines())
    try:
        pyproject = tomllib.loads(_read_text(folder / "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return
    project, poetry = _read_map(pyproject, "project"), _read_map(pyproject, "tool", "poetry")
    yield from _parse_names(project.get("dependencies"))
    for group in (
        *_read_map(project, "optional-dependencies").values(),
        *_read_map(pyproject, "dependency-groups").values(),
    ):
        yield from _parse_names(group)
    for section in (poetry, *(_read_map(poetry, "group", name) for name in _read_map(poetry, "group"))):
        yield from _parse_names(list(_read_map(section, "dependencies")))


def _list_node_packages(folder: Path) -> Iterator[str]:
    try:
        package_json = json.loads(_read_text(folder / "package.json") or "{}")
    except ValueError:
        return
    for section in ("dependencies", "devDependencies"):
        yield from _read_map(package_json, section)


def _parse_names(lines: Any) -> Iterator[str]:
    for line in lines if isinstance(lines, list) else ():
        word = _WORD.match(line) if isinstance(line, str) else None
        if word:
            yield _normalize_name(word[1])


def _normalize_name(package: str) -> str:
    """As the registry compares names: without extras and limits, in one spelling."""
    bare = re.split(r"[\[<>=!~; ]", package)[0]
    return re.sub(r"[-_.]+", "-", bare).lower()


def _read_map(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
