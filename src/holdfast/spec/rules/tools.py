"""The tools that a Python agent declares, read from its source text. Nothing is imported or run."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from holdfast.model.spec import ToolRef
from holdfast.spec.sections.agent import AgentSection

_MAX_SOURCE = 2_000_000
_SPEAKING = frozenset(
    {"asyncio", "http", "importlib", "multiprocessing", "os", "socket", "ssl", "subprocess", "urllib"}
)
"""Standard library modules that open connections, or start or load programs that do."""
_MAX_MODULES = 60
"""Local modules to read; for an agent with more, only the run can tell."""


class Tools(Struct, frozen=True):
    """The facts about an agent's tools that are known without running it."""

    names: frozenset[str]
    declared: bool
    """There are tools, or it is not certain that there are none."""
    certain: bool
    """Whether `names` is complete."""
    asks: bool = True
    """It may call a model: its imports could."""


def find_tools(agent: AgentSection, root: Path) -> Tools:
    """Return the tools of a Python agent whose modules are in `root`."""
    marked = _find_marked_tools(agent, root)
    names: set[str] = set(marked.names)
    certain = marked.certain and agent.tool_registry is None
    for ref in agent.tools:
        name = ref.name or _find_function_name(ref, root)
        names.add(name or "")
        certain = certain and name is not None
    # Two questions that differ: whether there are tools at all (a registry is enough to say yes), and whether their
    # names are all known (a registry makes that uncertain).
    declared = bool(agent.tools) or agent.tool_registry is not None or marked.declared
    return Tools(frozenset(names - {""}), declared, certain, marked.asks)


def find_module(name: str, root: Path) -> Path | None:
    """Return the file of a module next to the spec."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    base = root.joinpath(*name.split("."))
    for path in (base.with_name(base.name + ".py"), base / "__init__.py"):
        if os.path.isfile(path):
            return path
    return None


def _find_function_name(ref: ToolRef, root: Path) -> str | None:
    """Return the name of a plain function; None if only the running agent can tell."""
    module, _, attribute = ref.path.partition(":")
    tree = _parse(find_module(module, root))
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == attribute:
            return None if node.decorator_list else attribute
    return None


def _parse(path: Path | None) -> ast.Module | None:
    if path is None:
        return None
    try:
        if path.stat().st_size > _MAX_SOURCE:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_marked_tools(agent: AgentSection, root: Path) -> Tools:
    """Find the tools marked by `@holdfast.tool` in the agent's module and the local modules it imports."""
    # Follows local imports breadth-first through source text. Nothing is imported, because an agent's module may do
    # anything when it is. As soon as one file cannot be read, the names are no longer certain, and no name is called
    # unknown.
    waiting = list(dict.fromkeys(ref.path.partition(":")[0] for ref in agent.code))
    visited: set[str] = set()
    names: set[str] = set()
    certain = True
    asks = False
    while waiting and len(visited) < _MAX_MODULES:
        module = waiting.pop()
        if module in visited:
            continue
        visited.add(module)
        tree = _parse(find_module(module, root))
        if tree is None:
            certain = False
            continue
        marks = list(_iter_marked_names(tree))
        names.update(name for name in marks if name)
        certain = certain and None not in marks
        imported = list(_iter_imports(tree, module))
        local = [name for name in imported if find_module(name, root) is not None]
        # Any package may call a model, except plain ones of the standard library.
        packages = {name.partition(".")[0] for name in set(imported).difference(local)}
        asks = asks or bool(packages & _SPEAKING or packages - sys.stdlib_module_names - {"", "holdfast"})
        waiting += local
    certain = certain and not waiting
    return Tools(frozenset(names), bool(names) or not certain, certain, asks or not certain)


def _iter_imports(tree: ast.Module, module: str) -> Iterator[str]:
    package = module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(part for part in (package if node.level else "", node.module or "") if part)
            yield start
            yield from (f"{start}.{alias.name}" if start else alias.name for alias in node.names)


def _iter_marked_names(tree: ast.Module) -> Iterator[str | None]:
    """Yield the name of each marked function; None if a mark's name cannot be read."""
    packages, marks = _find_aliases(tree)
    decorators: set[int] = set()

    def is_mark(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in marks
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == "tool" else None
        return isinstance(owner, ast.Name) and owner.id in packages

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                mark = decorator.func if isinstance(decorator, ast.Call) else decorator
                if is_mark(mark):
                    decorators.add(id(mark))
                    yield _get_tool_name(decorator, node.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and is_mark(node) and id(node) not in decorators:
            yield None


def _get_tool_name(decorator: ast.expr, function: str) -> str | None:
    """Return the name of a marked tool: the function's own, or `x` for `@tool(name="x")`."""
    if not isinstance(decorator, ast.Call):
        return function
    for keyword in decorator.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return None if decorator.keywords or decorator.args else function


def _find_aliases(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names of the package, and of its `tool`, in this module."""
    packages: set[str] = set()
    marks: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            packages |= {alias.asname or "holdfast" for alias in node.names if alias.name == "holdfast"}
        elif isinstance(node, ast.ImportFrom) and node.module == "holdfast":
            marks |= {alias.asname or "tool" for alias in node.names if alias.name == "tool"}
    return packages, marks
