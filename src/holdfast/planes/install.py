"""Finds an agent's declared tools and model functions and replaces them with hooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from operator import setitem
from types import FunctionType, MethodType, ModuleType
from typing import Any

from holdfast.model.spec import AgentSpec, ToolRef
from holdfast.planes import registry
from holdfast.planes.functions import Hook
from holdfast.planes.registry import ToolUnusable
from holdfast.planes.swap import CallableReference, DeclaredCallable, put_back, replace_code, replace_references

_FAMILIES = (("_run", "_arun"), ("invoke", "ainvoke"), ("__call__",))
"""The methods in which a tool object does its work, innermost first: only the first family that exists is wrapped."""


class InstalledHooks:
    """The hooks in this process: names by plane."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self.llm: list[str] = []
        self._wrapped: dict[tuple[int, int], str] = {}
        self._undo: list[Callable[[], None]] = []
        self._declared: list[DeclaredCallable] = []  # the ids above stay valid only while the objects live

    def add(self, declared: DeclaredCallable) -> None:
        """Wrap one callable wherever it is referenced."""
        names = self.tools if declared.plane == "tool" else self.llm
        # A Python function is wrapped in place, by exchanging its code, and every reference to it follows. Anything
        # else must be replaced wherever it is referenced, which is possible only if all places are known.
        pieces = _find_functions(declared.target)
        fresh = [piece for piece in pieces if not self._is_wrapped(piece, declared.name)]
        if pieces and not fresh:
            return
        if declared.name in names:
            raise ToolUnusable(
                f"two different {declared.plane} functions are called {declared.name!r}",
                hint="rename one: {name: x, callable: m:f}",
            )
        self._declared.append(declared)
        names.append(declared.name)
        if not fresh:
            fresh = [(replace_references(declared), None)]
            self._undo.append(lambda: put_back(declared))
        for function, owner in fresh:
            self._wrap(declared, function, owner)

    def remove(self) -> None:
        """Restore everything to its original state."""
        while self._undo:
            self._undo.pop()()

    def _is_wrapped(self, piece: tuple[FunctionType, object | None], name: str) -> bool:
        other_name = self._wrapped.get((id(piece[0]), id(piece[1])))
        if other_name is not None and other_name != name:
            raise ToolUnusable(
                f"{name!r} and {other_name!r} are the same function; a fault could not distinguish them",
                hint="declare it once",
            )
        return other_name is not None

    def _wrap(self, declared: DeclaredCallable, function: FunctionType, owner: object | None) -> None:
        def hook(twin: FunctionType) -> Hook:
            return Hook(declared.plane, declared.name, twin, owner, method=declared.method)

        twin = replace_code(function, hook)
        self._wrapped[id(function), id(owner)] = declared.name
        self._undo.append(lambda: setattr(function, "__code__", twin.__code__))


def install(agent: AgentSpec) -> InstalledHooks:
    """Wrap everything the spec and the decorator declare. The agent's modules must already be imported."""
    done = InstalledHooks()
    try:
        for declared in _group_callables(_iterate_declared(agent)):
            done.add(declared)
    except BaseException:
        done.remove()
        raise
    return done


def find_tool_name(target: Any, ref: ToolRef) -> str:
    """Return a tool's name: its `.name`, its function's name, else the last part of its path."""
    for name in (getattr(target, "name", None), getattr(target, "__name__", None)):
        if isinstance(name, str) and name and name != "<lambda>":
            return name
    return ref.path.replace(":", ".").rsplit(".", 1)[-1]


def _iterate_declared(agent: AgentSpec) -> Iterator[DeclaredCallable]:
    for ref in agent.tools:
        yield _resolve_reference("tool", ref)
    if agent.tool_registry:
        yield from _iterate_registered(agent.tool_registry)
    for name, function in registry.declared.items():
        yield _declare_item(registry.declared, name, name, function)
    for ref in agent.llm:
        yield _resolve_reference("llm", ref)


def _resolve_reference(plane: str, ref: ToolRef) -> DeclaredCallable:
    target, holder, key = resolve(ref.path)
    method = isinstance(holder, type) and isinstance(inspect.getattr_static(holder, key, None), FunctionType)
    return DeclaredCallable(
        plane, ref.name or find_tool_name(target, ref), target, [CallableReference(holder, key, setattr)], method=method
    )


def _iterate_registered(path: str) -> Iterator[DeclaredCallable]:
    mapping, _, _ = resolve(path)
    if not isinstance(mapping, Mapping):
        raise ToolUnusable(
            f"agent.tool_registry {path!r} is a {type(mapping).__name__}, not a mapping of name to callable",
            hint="use a dict or holdfast.ToolRegistry",
        )
    for name in list(mapping):  # not items(): a list of pairs would count as another reference
        yield _declare_item(mapping, name, str(name), mapping[name])


def _declare_item(mapping: Mapping[Any, Any], key: Any, name: str, target: Any) -> DeclaredCallable:
    return DeclaredCallable("tool", name, target, [CallableReference(mapping, key, setitem)])


def _group_callables(callables: Iterator[DeclaredCallable]) -> list[DeclaredCallable]:
    """Return one entry per callable and name.

    A callable that must be replaced is replaced wherever it is referenced.
    """
    groups: dict[tuple[str, str, int], DeclaredCallable] = {}
    for declared in callables:
        group = groups.setdefault((declared.plane, declared.name, id(declared.target)), declared)
        if group is not declared:
            group.references.extend(declared.references)
    return list(groups.values())


def _find_functions(target: Any) -> list[tuple[FunctionType, object | None]]:
    """Return the Python functions behind a callable, each with the object it must be called on."""
    if isinstance(target, FunctionType):
        return [(target, None)]
    if isinstance(target, MethodType):
        return [(target.__func__, target.__self__)] if isinstance(target.__func__, FunctionType) else []
    if isinstance(target, type) or type(target).__module__ == "functools":
        return []  # the function of a partial may serve other tools, too
    parts = (getattr(target, name, None) for name in ("func", "coroutine"))
    functions = [
        found for part in parts if isinstance(part, FunctionType | MethodType) for found in _find_functions(part)
    ]
    for family in _FAMILIES if not functions else ():
        methods = (inspect.getattr_static(type(target), name, None) for name in family)
        functions = functions or [(method, target) for method in methods if isinstance(method, FunctionType)]
    return functions


def resolve(path: str) -> tuple[Any, Any, str]:
    """Return the object, its owner and its attribute name.

    Raises UserError with the nearest match if it does not exist.
    """
    module_name, _, attributes = path.partition(":")
    if not module_name or not attributes:
        raise ToolUnusable(f"{path!r} is not of the form module:attribute")
    target: Any = import_module(module_name)
    holder, key = target, ""
    for key in attributes.split("."):
        holder = target
        try:
            target = getattr(target, key)
        except AttributeError:
            from difflib import get_close_matches

            what = f"module {holder.__name__}" if isinstance(holder, ModuleType) else f"a {type(holder).__name__}"
            near = get_close_matches(key, dir(holder), 1)
            hint = f"did you mean {near[0]}?" if near else ""
            raise ToolUnusable(f"{path!r}: {what} has no attribute {key!r}", hint=hint) from None
    return target, holder, key
