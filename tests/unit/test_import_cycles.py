"""No module of the product imports itself by way of others: not in a function, not for type checking only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
Graph = dict[str, set[str]]


def modules(src: Path) -> dict[str, Path]:
    """Every module below `src` by its dotted name; a package is its `__init__`."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: set[str]) -> Iterator[str]:
    """The modules that a module imports anywhere in its text."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                part = f"{origin}.{alias.name}"
                if part in known:
                    yield part  # and not the package that it lies in
                elif origin in known:
                    yield origin


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands below a node on lines of its own, at any depth; expressions import nothing."""
    for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, inside, ()):
            yield child
            yield from statements(child)


def graph(src: Path) -> Graph:
    """Who imports whom."""
    known = modules(src)
    return {name: set(imported(name, path, set(known))) - {name} for name, path in known.items()}


def cycles(graph: Graph) -> Iterator[frozenset[str]]:
    """Groups of modules in which each reaches all the others."""
    reach = {name: reachable(name, graph) for name in graph}
    seen: set[str] = set()
    for name in graph:
        if name not in seen and name in reach[name]:
            group = frozenset(other for other in reach[name] if name in reach[other])
            seen |= group
            yield group


def reachable(start: str, graph: Graph) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph[name]
    return found


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others() -> None:
    found = {frozenset(name.removeprefix("holdfast.") for name in group) for group in cycles(graph(SRC))}
    assert sorted(map(sorted, found)) == []


def test_a_cycle_is_found_wherever_the_import_stands(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "a.py").write_text("from room.b import thing\nimport os\n")
    (room / "b.py").write_text("def thing():\n    from . import c\n")
    (room / "c.py").write_text("if TYPE_CHECKING:\n    from .a import other\n")
    (room / "d.py").write_text("import room.a\n")
    assert list(cycles(graph(tmp_path))) == [frozenset({"room.a", "room.b", "room.c"})]
    (room / "c.py").write_text("")
    assert list(cycles(graph(tmp_path))) == []
