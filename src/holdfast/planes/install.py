"""Finds an agent's declared tools and model functions and replaces them with hooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from operator import setitem
from types import FunctionType, MethodType, ModuleType
from typing import Any

from holdfast.errors import UserError
from holdfast.model.spec import AgentSpec, ToolRef
from holdfast.planes import registry
from holdfast.planes.functions import Hook
from holdfast.planes.swap import CallableHome, Declared, exchange, put_back, replace, restore

_FAMILIES = (("_run", "_arun"), ("invoke", "ainvoke"), ("__call__",))
"""The methods in which a tool object does its work, innermost first: only the first family that exists is wrapped."""


class Installed:
    """The hooks in this process: names by plane."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self.llm: list[str] = []
        self._wrapped: dict[tuple[int, int], str] = {}
        self._undo: list[Callable[[], None]] = []
        self._kept: list[Declared] = []  # the ids above stay valid only while the objects live

    def add(self, declared: Declared) -> None:
        """Wraps one callable wherever it is referenced."""
        names = self.tools if declared.plane == "tool" else self.llm
        pieces = list(_functions(declared.target))
        fresh = [piece for piece in pieces if not self._known(piece, declared.name)]
        if pieces and not fresh:
            return
        if declared.name in names:
            raise UserError(
                f"two different {declared.plane} functions are called {declared.name!r}",
                code="tool-unusable",
                hint="name one: {name: x, callable: m:f}",
            )
        self._kept.append(declared)
        names.append(declared.name)
        if not fresh:
            fresh = [(replace(declared), None)]
            self._undo.append(lambda: put_back(declared))
        for function, owner in fresh:
            self._wrap(declared, function, owner)

    def remove(self) -> None:
        """Restores everything to its original state."""
        while self._undo:
            self._undo.pop()()

    def _known(self, piece: tuple[FunctionType, object | None], name: str) -> bool:
        known = self._wrapped.get((id(piece[0]), id(piece[1])))
        if known is not None and known != name:
            raise UserError(
                f"{name!r} and {known!r} are the same function; a fault could not distinguish them",
                code="tool-unusable",
                hint="declare it once",
            )
        return known is not None

    def _wrap(self, declared: Declared, function: FunctionType, owner: object | None) -> None:
        def hook(twin: FunctionType) -> Hook:
            return Hook(declared.plane, declared.name, twin, owner, method=declared.method)

        twin = exchange(function, hook)
        self._wrapped[id(function), id(owner)] = declared.name
        self._undo.append(lambda: restore(function, twin))


def install(agent: AgentSpec) -> Installed:
    """Wraps everything the spec and the decorator declare. The agent's modules must already be imported."""
    done = Installed()
    try:
        for declared in _grouped(_declarations(agent)):
            done.add(declared)
    except BaseException:
        done.remove()
        raise
    return done


def name_of(target: Any, ref: ToolRef) -> str:
    """A tool's name: its `.name`, its function's name, else the last part of its path."""
    for name in (getattr(target, "name", None), getattr(target, "__name__", None)):
        if isinstance(name, str) and name and name != "<lambda>":
            return name
    return ref.path.replace(":", ".").rsplit(".", 1)[-1]


def _declarations(agent: AgentSpec) -> Iterator[Declared]:
    for ref in agent.tools:
        yield _at("tool", ref)
    if agent.tool_registry:
        yield from _registered(agent.tool_registry)
    for name, function in registry.declared.items():
        yield _keyed(registry.declared, name, name, function)
    for ref in agent.llm:
        yield _at("llm", ref)


def _at(plane: str, ref: ToolRef) -> Declared:
    target, holder, key = resolve(ref.path)
    method = isinstance(holder, type) and isinstance(inspect.getattr_static(holder, key, None), FunctionType)
    return Declared(
        plane, ref.name or name_of(target, ref), target, [CallableHome(holder, key, setattr)], method=method
    )


def _registered(path: str) -> Iterator[Declared]:
    mapping, _, _ = resolve(path)
    if not isinstance(mapping, Mapping):
        raise UserError(
            f"agent.tool_registry {path!r} is a {type(mapping).__name__}, not a mapping of name to callable",
            code="tool-unusable",
            hint="use a dict or holdfast.ToolRegistry",
        )
    for name in list(mapping):  # not items(): a list of pairs would count as another reference
        yield _keyed(mapping, name, str(name), mapping[name])


def _keyed(mapping: Mapping[Any, Any], key: Any, name: str, target: Any) -> Declared:
    return Declared("tool", name, target, [CallableHome(mapping, key, setitem)])


def _grouped(callables: Iterator[Declared]) -> list[Declared]:
    """One entry per callable and name. A callable that must be replaced is replaced wherever it is referenced."""
    groups: dict[tuple[str, str, int], Declared] = {}
    for declared in callables:
        group = groups.setdefault((declared.plane, declared.name, id(declared.target)), declared)
        if group is not declared:
            group.homes.extend(declared.homes)
    return list(groups.values())


def _functions(target: Any) -> Iterator[tuple[FunctionType, object | None]]:
    """The Python functions behind a callable, each with the object it must be called on."""
    if isinstance(target, FunctionType):
        yield target, None
    elif isinstance(target, MethodType) and isinstance(target.__func__, FunctionType):
        yield target.__func__, target.__self__
    elif not isinstance(target, type) and type(target).__module__ != "functools":
        yield from _object_functions(target)  # the function of a partial may serve other tools, too


def _object_functions(target: Any) -> Iterator[tuple[FunctionType, object | None]]:
    parts = [getattr(target, name, None) for name in ("func", "coroutine")]
    functions = [piece for part in parts if isinstance(part, FunctionType | MethodType) for piece in _functions(part)]
    if functions:
        yield from functions
        return
    for family in _FAMILIES:
        methods = [inspect.getattr_static(type(target), name, None) for name in family]
        python_functions = [method for method in methods if isinstance(method, FunctionType)]
        if python_functions:
            yield from ((method, target) for method in python_functions)
            return


def resolve(path: str) -> tuple[Any, Any, str]:
    """The object, its owner and its attribute name; raises UserError with the nearest match if it does not exist."""
    module_name, _, attributes = path.partition(":")
    if not module_name or not attributes:
        raise UserError(f"{path!r} is not of the form module:attribute", code="tool-unusable")
    target: Any = import_module(module_name)
    holder, key = target, ""
    for key in attributes.split("."):
        holder = target
        try:
            target = getattr(target, key)
        except AttributeError:
            raise UserError(
                f"{path!r}: {_named(holder)} has no attribute {key!r}", code="tool-unusable", hint=_near(key, holder)
            ) from None
    return target, holder, key


def _named(place: Any) -> str:
    return f"module {place.__name__}" if isinstance(place, ModuleType) else f"a {type(place).__name__}"


def _near(key: str, holder: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, dir(holder), 1)
    return f"did you mean {near[0]}?" if near else ""
