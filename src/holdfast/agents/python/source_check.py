"""Whether the `module:attribute` references of an agent can work, read from source: nothing of the user's is run.

Only an import can tell for sure, so nearly every finding is a warning. An error needs the module's source next to the
spec, no construct that could fill its names, and a name that none of the user's files involved even contains.
"""

from __future__ import annotations

import ast
import os
import re
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import decode_source, resolve_name
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from holdfast.model.spec import AgentSpec

_FILLS_NAMES = {
    "*", "__builtins__", "__class__", "__dict__", "__getattr__", "__import__", "__loader__", "__name__", "__path__",
    "__setattr__", "__spec__", "_getframe", "builtins", "ctypes", "currentframe", "eval", "exec", "f_globals",
    "globals", "import_module", "importlib", "locals", "meta_path", "modules", "path_hooks", "runpy", "setattr", "vars",
}  # fmt: skip
"""Words of code that may set names of a module, or replace it; `*` is that of an import."""
_HARMLESS = re.compile(r"__name__\s*==|getLogger\(__name__\)")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_VALUE = ast.Constant | ast.List | ast.Dict | ast.Tuple | ast.Set | ast.JoinedStr
_FILES_READ = 50
"""Modules of the user's own that import each other, at most."""


class _File(NamedTuple):
    """A module of the user's own."""

    place: str
    text: str
    tree: ast.Module
    package: str

    @property
    def words(self) -> set[str]:
        return {word.strip() for word in re.findall(r"\w+|(?<=import)\s*\*", _HARMLESS.sub("", self.text))}


class SourceProblem(Struct, frozen=True):
    """A reason why a reference cannot work, or probably cannot."""

    key: str
    message: str
    hint: str = ""
    suggestion: str = ""
    certain: bool = False


def find_source_problems(agent: AgentSpec, root: Path) -> Iterator[SourceProblem]:
    """Yield what is wrong with the references of the section, each key once."""
    python_path = agent.env.get("PYTHONPATH", "")
    extra_folders = [str(root / folder) for folder in python_path.split(os.pathsep) if folder]
    modules = _Modules([str(root), *extra_folders, *filter(None, sys.path)], root)
    for key, path in list_references(agent):
        # Unusual source, such as a sum of 5,000 texts, can fail in the reading itself. Then only a run can tell.
        with suppress(Exception):
            problem = modules.find_problem(key, path)
            if problem is not None and not ("${" in python_path and not problem.certain):
                yield problem


def list_references(agent: AgentSpec) -> Iterator[tuple[str, str]]:
    """Yield every `module:attribute` of the section, with its key."""
    if agent.is_python:
        yield "agent.endpoint", agent.endpoint
        yield from ((f"agent.tools[{at}]", ref.path) for at, ref in enumerate(agent.tools))
        yield from ((f"agent.llm[{at}]", ref.path) for at, ref in enumerate(agent.llm))
        if agent.tool_registry:
            yield "agent.tool_registry", agent.tool_registry
    if agent.reset_function:
        yield "agent.reset_function", agent.reset_function


def find_module_here(name: str, root: str) -> str:
    """Return the end of a dotted name that is a module next to the spec: `app` for `shop.app`; empty if none is."""
    *above, last = name.split(".")
    paths = (os.path.join(root, f"{last}.py"), os.path.join(root, last, "__init__.py"))
    return last if above and any(map(os.path.isfile, paths)) else ""


class _Modules:
    """Finds modules as an import would, without importing them."""

    def __init__(self, folders: Sequence[str], root: Path) -> None:
        self._folders = list(dict.fromkeys(folders))
        self._root = root

    def find_problem(self, key: str, path: str) -> SourceProblem | None:
        name, _, attribute = path.partition(":")
        top = name.partition(".")[0]
        if not attribute or "{{" in path or "${" in path or top in sys.stdlib_module_names or top in sys.modules:
            return None
        try:
            files = self._read_own_files(name)
        except SyntaxError as broken:
            message = f"a run will try to import {name!r}: {broken.filename}:{broken.lineno}: {broken.msg}"
            return SourceProblem(key, message, "fix the file")
        if name in files:
            return self._find_missing_import(key, files) or self._find_wrong_attribute(key, path, files)
        if self.find(name) is not None or any(file.words & _FILLS_NAMES for file in files.values()):
            return None
        near = find_module_here(name, str(self._root)) or _find_nearest(
            name, [entry.removesuffix(".py") for entry in os.listdir(self._root)]
        )
        message = f"{name!r} is neither installed nor next to the spec; a run will try to import it"
        return SourceProblem(key, message, _suggest_name(near), near)

    def find(self, name: str) -> ModuleSpec | None:
        """Find a module as an import would. `importlib.util.find_spec` would import the packages above it."""
        # A package is looked up in the folders of the package above it, as an import would do after running that one.
        folders: Sequence[str] | None = None
        whole, spec = "", None
        for part in name.split("."):
            whole = f"{whole}.{part}" if whole else part
            spec = self._find_part(whole, folders)
            if spec is None:
                return None
            folders = list(spec.submodule_search_locations or ())
        return spec

    def _find_part(self, whole: str, folders: Sequence[str] | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            places = self._folders if folders is None and finder is PathFinder else folders
            spec = finder.find_spec(whole, places)
            if spec is not None:
                return spec
        return None

    def _read_own_files(self, name: str) -> dict[str, _File]:
        """Return the module, the packages around it, and all modules of the user's own that these import."""
        files = dict[str, _File]()
        waiting = [name[: dot.start()] for dot in re.finditer(r"\.|$", name)]
        while waiting and len(files) < _FILES_READ:
            name = waiting.pop()
            spec = None if name in files else self.find(name)
            origin = (spec and spec.origin) or ""
            place = origin.removeprefix(f"{self._root}{os.sep}")
            if spec is None or place == origin or not place.endswith(".py") or "-packages" in place:
                continue
            text = decode_source(Path(origin).read_bytes())
            files[name] = _File(place, text, ast.parse(text, place), spec.parent or "")
            waiting += [
                each for node in ast.walk(files[name].tree) for each in _list_imports(node, files[name].package)
            ]
        return files

    def _find_missing_import(self, key: str, files: Mapping[str, _File]) -> SourceProblem | None:
        """Return the first absolute import at the top of a file for which there is nothing to import."""
        if any({"path", "addsitedir", *_FILLS_NAMES} & file.words for file in files.values()):
            return None  # it may change where modules are found
        for file in files.values():
            for node in file.tree.body:
                for top in (name.partition(".")[0] for name in _list_imports(node, "")):
                    if self.find(top) is None:
                        message = (
                            f"{file.place}:{node.lineno} imports {top!r}, which is not installed; a run will try it"
                        )
                        return SourceProblem(key, message, f"install the package that provides {top}")
        return None

    def _find_wrong_attribute(self, key: str, path: str, files: Mapping[str, _File]) -> SourceProblem | None:
        module, _, attribute = path.partition(":")
        first, _, rest = attribute.partition(".")
        file = files[module]
        names = set(_list_bound_names(symtable.symtable(file.text, file.place, "exec")))
        if first in names:
            return _find_wrong_endpoint(key, path, first, file.tree) if key == "agent.endpoint" and not rest else None
        if _FILLS_NAMES & file.words or (file.package == module and self.find(f"{module}.{first}")):
            return None
        near = _find_nearest(first, [name for name in names if not name.startswith("__")])
        # Only an attribute whose name occurs in none of the user's files is certainly missing: otherwise any of them
        # could set it while it is imported.
        certain = len(files) < _FILES_READ and not any({first, *_FILLS_NAMES} & each.words for each in files.values())
        message = f"{path!r}: module {module} has no attribute {first!r}" + ("" if certain else "; a run will try it")
        return SourceProblem(key, message, _suggest_name(near), near, certain)


def _list_imports(node: ast.AST, package: str) -> list[str]:
    """Return the modules that a statement may import; relative ones only if the package is known."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or (node.level and not package):
        return []
    module = resolve_name("." * node.level + (node.module or ""), package)
    return [module, *(f"{module}.{alias.name}" for alias in node.names)]


def _list_bound_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names of the module that any statement binds, at its top or by `global`."""
    for symbol in table.get_symbols():
        is_bound = symbol.is_assigned() or symbol.is_imported() if table.get_type() == "module" else False
        if is_bound or symbol.is_declared_global():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _list_bound_names(inner)


def _find_wrong_endpoint(key: str, path: str, name: str, tree: ast.Module) -> SourceProblem | None:
    """Return an endpoint that looks like a value, or like a function that cannot be called with the prompt alone."""
    bound = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    functions = [node for node in tree.body if isinstance(node, _FUNCTION) and node.name == name]
    values = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets == bound]
    if any(isinstance(value, _VALUE) for value in values):
        message = f"agent.endpoint {path!r} looks like a value, which cannot be called; a run will try it"
        return SourceProblem(key, message, "name a function, or an object with invoke, ainvoke or __call__")
    if len(functions) != 1 or bound or functions[0].decorator_list:
        return None
    takes = functions[0].args
    positional = [*takes.posonlyargs, *takes.args]
    required = len(positional) - len(takes.defaults)
    if required <= 1 and (positional or takes.vararg) and None not in takes.kw_defaults:
        return None
    message = f"agent.endpoint {path!r} takes ({ast.unparse(takes)}); a run will call it with the prompt alone"
    return SourceProblem(key, message, "name a function with one argument: the prompt or `messages`")


def _find_nearest(name: str, known: Sequence[str]) -> str:
    return next(iter(get_close_matches(name, known, 1)), "")


def _suggest_name(near: str) -> str:
    return f"did you mean {near}?" if near else ""
