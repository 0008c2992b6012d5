"""What `import holdfast` gives: a sorted list of names, typed, and loaded when they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

SRC = Path(holdfast.__file__).parents[1]
NAMES = [
    "HoldfastError",
    "InjectedError",
    "LoadedSpec",
    "RunResult",
    "SpecError",
    "ToolRegistry",
    "__version__",
    "build",
    "check",
    "fault",
    "load",
    "rejudge",
    "run",
    "run_async",
    "tool",
]


def test_the_public_names_are_these_and_sorted() -> None:
    assert holdfast.__all__ == NAMES == sorted(NAMES)
    assert dir(holdfast) == NAMES


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in NAMES:
        found = getattr(holdfast, name)
        assert isinstance(found, str) or found.__doc__, name


def test_a_type_checker_is_told_the_same_names() -> None:
    tree = ast.parse((SRC / "holdfast/__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(told) == NAMES
    assert (SRC / "holdfast/py.typed").exists()


def test_no_public_name_is_a_submodule_which_would_hide_it_once_imported() -> None:
    modules = {path.stem for path in (SRC / "holdfast").iterdir()}
    assert modules.isdisjoint(NAMES)


def test_a_name_that_is_not_there_is_reported() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        holdfast.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import holdfast, sys; print(sorted(name for name in sys.modules if name.startswith('holdfast')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() in ("['holdfast']", "['_holdfast', 'holdfast']")


def test_nothing_of_the_package_imports_the_pytest_door() -> None:
    found = [path for path in (SRC / "holdfast").rglob("*.py") if "import holdfast_pytest" in path.read_text()]
    assert found == []
