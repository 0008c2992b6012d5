"""Whether the `module:attribute` references of an agent can work, read from source: nothing of the user's is run.

Only what is certain to fail is a problem. A module that fills its own names (`globals()`, a star import,
`__getattr__`) or changes `sys.path` is left to `doctor` and to the run, which import it.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from msgspec import Struct

from holdfast.model.spec import AgentSpec

_FILLS_ITSELF = ("globals", "vars", "exec", "setattr", "locals")
_DEPTH = 20
"""Modules of the user's own that import each other, at most."""


class SourceProblem(Struct, frozen=True):
    """Why a reference cannot work."""

    key: str
    message: str
    hint: str = ""
    suggestion: str = ""


def source_problems(agent: AgentSpec, root: Path) -> Iterator[SourceProblem]:
    """What is certainly wrong with the references of the section, each key once."""
    folders = [str(root), *agent.env.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    modules = _Modules([folder for folder in folders if folder], root)
    for key, path in references_of(agent):
        problem = modules.problem_of(key, path)
        if problem is not None:
            yield problem


def references_of(agent: AgentSpec) -> Iterator[tuple[str, str]]:
    """Every `module:attribute` of the section, with its key."""
    if agent.in_python:
        yield "agent.endpoint", agent.endpoint
        yield from ((f"agent.tools[{at}]", ref.path) for at, ref in enumerate(agent.tools))
        yield from ((f"agent.llm[{at}]", ref.path) for at, ref in enumerate(agent.llm))
        if agent.tool_registry:
            yield "agent.tool_registry", agent.tool_registry
    if agent.reset_function:
        yield "agent.reset_function", agent.reset_function


class _Modules:
    """Finds modules as an import would, without importing them."""

    def __init__(self, folders: Sequence[str], root: Path) -> None:
        self._folders = list(dict.fromkeys(folders))
        self._root = root

    def problem_of(self, key: str, path: str) -> SourceProblem | None:
        name, _, attribute = path.partition(":")
        if not name or not attribute or "{{" in path or "${" in path:
            return None
        found = self.find(name)
        if found is None:
            near = _nearest(name, self._beside())
            message = f"cannot import {name!r}: no such module is installed or next to the spec"
            return SourceProblem(key, message, _meant(near), near)
        source = _source(found)
        if source is None:
            return None
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as broken:
            return self._broken_source(key, name, found, broken)
        return self._failing_import(key, found, tree, {name}) or _wrong_attribute(key, path, attribute, found, tree)

    def find(self, name: str) -> ModuleSpec | None:
        """The module as the import system finds it. `importlib.util.find_spec` would import the packages above it."""
        folders: Sequence[str] | None = None
        whole, found = "", None
        for part in name.split("."):
            whole = f"{whole}.{part}" if whole else part
            found = self._find_one(whole, folders)
            if found is None:
                return None
            folders = list(found.submodule_search_locations or ())
        return found

    def _find_one(self, whole: str, folders: Sequence[str] | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            places = self._folders if folders is None and finder is PathFinder else folders
            found = finder.find_spec(whole, places)
            if found is not None:
                return found
        return None

    def _beside(self) -> list[str]:
        try:
            return [entry.removesuffix(".py") for entry in os.listdir(self._root)]
        except OSError:
            return []

    def _broken_source(self, key: str, name: str, found: ModuleSpec, broken: Exception) -> SourceProblem:
        line, why = (broken.lineno, broken.msg) if isinstance(broken, SyntaxError) else (1, str(broken))
        message = f"cannot import {name!r}: {self._shown(found)}:{line}: {why}"
        return SourceProblem(key, message, "fix the file")

    def _failing_import(self, key: str, found: ModuleSpec, tree: ast.Module, read: set[str]) -> SourceProblem | None:
        """The first import that must fail, in the module or in a module next to the spec that it imports."""
        if any(isinstance(node, ast.Attribute) and node.attr == "path" for node in ast.walk(tree)):
            return None  # it may change sys.path
        for line, name in _imports(tree):
            inner = self.find(name.partition(".")[0])
            if inner is None:
                message = f"cannot import {name!r}: {self._shown(found)}:{line} imports it, and it is not installed"
                return SourceProblem(key, message, f"pip install {name.partition('.')[0]}")
            if name in read or len(read) > _DEPTH or not self._is_users(inner) or (text := _source(inner)) is None:
                continue
            read.add(name)
            try:
                inner_tree = ast.parse(text)
            except (SyntaxError, ValueError) as broken:
                return self._broken_source(key, name, inner, broken)
            if problem := self._failing_import(key, inner, inner_tree, read):
                return problem
        return None

    def _is_users(self, found: ModuleSpec) -> bool:
        origin = found.origin or ""
        return origin.startswith(f"{self._root}{os.sep}") and "-packages" not in origin

    def _shown(self, found: ModuleSpec) -> str:
        return (found.origin or found.name).removeprefix(f"{self._root}{os.sep}")


def _source(found: ModuleSpec) -> bytes | None:
    if found.origin is None or not found.origin.endswith(".py"):
        return None
    try:
        return Path(found.origin).read_bytes()
    except OSError:
        return None


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The absolute imports that are always run when the module is."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module


def _wrong_attribute(key: str, path: str, attribute: str, found: ModuleSpec, tree: ast.Module) -> SourceProblem | None:
    names = _top_names(tree)
    first, _, rest = attribute.partition(".")
    if names is None or (found.submodule_search_locations is not None and first not in names):
        return None  # it fills its own names, or the name may be a module of the package
    if first not in names:
        near = _nearest(first, [name for name in names if not name.startswith("__")])
        message = f"{path!r}: module {found.name} has no attribute {first!r}"
        return SourceProblem(key, message, _meant(near), near)
    if key != "agent.endpoint" or rest:
        return None
    node = names[first]
    if isinstance(node, ast.Constant | ast.List | ast.Dict | ast.Tuple | ast.Set | ast.JoinedStr):
        message = f"agent.endpoint {path!r} is a value, which cannot be asked"
        return SourceProblem(key, message, "name a function, or an object with invoke, ainvoke or __call__")
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
        return _wrong_parameters(key, path, node.args)
    return None


def _wrong_parameters(key: str, path: str, takes: ast.arguments) -> SourceProblem | None:
    """A function that cannot be called with the prompt alone."""
    positional = [*takes.posonlyargs, *takes.args]
    required = len(positional) - len(takes.defaults)
    if required <= 1 and (positional or takes.vararg) and None not in takes.kw_defaults:
        return None
    message = f"agent.endpoint {path!r} cannot be called with the prompt alone: it takes ({ast.unparse(takes)})"
    return SourceProblem(key, message, "name a function of one argument, the prompt or `messages`")


def _top_names(tree: ast.Module) -> dict[str, ast.AST | None] | None:
    """What the module defines at its top, with the value where there is only one; None if only running it tells."""
    values: dict[str, ast.AST] = {}
    bound = Counter[str]({"__doc__": 2, "__name__": 2, "__file__": 2})
    for node in _top_nodes(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
        for name in _bound(node):
            bound[name] += 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                values[name] = node
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Name) and inner.id in _FILLS_ITSELF:
            return None
        if isinstance(inner, ast.Global):
            bound.update(dict.fromkeys(inner.names, 2))
    if "*" in bound or "__getattr__" in bound:
        return None
    return {name: values.get(name) if count == 1 else None for name, count in bound.items()}


def _top_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose names belong to the module: not those inside of functions and classes."""
    for inner in ast.iter_child_nodes(node):
        yield inner
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _top_nodes(inner)


def _bound(node: ast.AST) -> list[str]:
    """The names that a node binds by itself."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return [node.name] if isinstance(node, ast.ExceptHandler) and node.name else []


def _nearest(name: str, known: Sequence[str]) -> str:
    return next(iter(get_close_matches(name, known, 1)), "")


def _meant(near: str) -> str:
    return f"did you mean {near}?" if near else ""
