"""Exchanges the code of a Python function, to make every reference to it call the hook.

Aliases, partials, closures and `from x import f` all hold the same function object; only its code object changes. The
trampoline has the function's own parameters, so the signature stays. It carries the hook as a constant, because it runs
with the function's globals. It names the function's free variables, because a code object must have the same number of
them.
"""

from __future__ import annotations

import functools
import gc
import inspect
import warnings
from collections.abc import Callable
from types import BuiltinMethodType, CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from holdfast.planes.registry import ToolUnusable

_MARK = "holdfast hook"

_BODIES = {
    "plain": "return {hook}",
    "coroutine": "return await {hook}",
    "generator": "yield from {hook}",
    "async_generator": "async for _holdfast_item in {hook}: yield _holdfast_item",
}


def find_kind(function: Callable[..., Any]) -> str:
    """Return plain, coroutine, generator or async_generator."""
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    if inspect.isasyncgenfunction(function):
        return "async_generator"
    return "generator" if inspect.isgeneratorfunction(function) else "plain"


def replace_code(function: FunctionType, make_hook: Callable[[FunctionType], Callable[..., Any]]) -> FunctionType:
    """Replace the function's code with a hook; return a twin with the old code.

    `make_hook` gets the twin and returns `hook(args, kwargs)`: the value of a plain function, or an awaitable, an
    iterator or an async iterator for the other kinds.
    """
    if function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
        raise ToolUnusable(f"{function.__qualname__} is a coroutine made of a generator", hint="write it as async def")
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__dict__.update(function.__dict__)
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    function.__code__ = _build_trampoline(function.__code__, find_kind(twin), make_hook(twin))
    return twin


def _build_trampoline(code: CodeType, kind: str, hook: Callable[..., Any]) -> CodeType:
    head, positional, by_name = _list_parameters(code)
    word = "async def" if kind in ("coroutine", "async_generator") else "def"
    body = _BODIES[kind].format(hook=f"({_MARK!r})({positional}, {by_name})")
    lines = ["def outer():", *(f"    {name} = None" for name in code.co_freevars), f"    {word} inner({head}):"]
    if code.co_freevars:
        lines.append(f"        if 0: {', '.join(code.co_freevars)}")  # named but never read: a cell may be empty
    # The trampoline is compiled from source, so that Python itself checks the parameters; the placeholder text in its
    # constants is then replaced by the hook object, which no name in the function's globals could hide.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a call of a string: it is a placeholder
        source = "\n".join([*lines, f"        {body}", "    return inner"])
        module = compile(source, "<holdfast>", "exec", dont_inherit=True)
    outer = next(const for const in module.co_consts if isinstance(const, CodeType))
    inner = next(const for const in outer.co_consts if isinstance(const, CodeType))
    return inner.replace(
        co_consts=tuple(hook if const == _MARK else const for const in inner.co_consts),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def _list_parameters(code: CodeType) -> tuple[str, str, str]:
    """Return the parameter list, and the arguments to pass on, by position and by name."""
    names, at = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
    positional, keyword = list(names[: code.co_argcount]), names[code.co_argcount : at]
    head, passed, by_name = [*positional], [*positional], [f"{name!r}: {name}" for name in keyword]
    if code.co_posonlyargcount:
        head.insert(code.co_posonlyargcount, "/")
    if code.co_flags & inspect.CO_VARARGS:
        head.append(f"*{names[at]}")
        passed.append(f"*{names[at]}")
        at += 1
    elif keyword:
        head.append("*")
    head += keyword
    if code.co_flags & inspect.CO_VARKEYWORDS:
        head.append(f"**{names[at]}")
        by_name.append(f"**{names[at]}")
    return ", ".join(head), f"({''.join(f'{name}, ' for name in passed)})", f"{{{', '.join(by_name)}}}"


class CallableReference(NamedTuple):
    """A place that refers to a callable, and how to replace it there."""

    container: Any
    key: Any
    put: Callable[[Any, Any, Any], None]


class DeclaredCallable:
    """A declared callable with its name; not a container, to keep it from counting as a stray reference."""

    __slots__ = ("method", "name", "plane", "references", "target")

    def __init__(
        self, plane: str, name: str, target: Any, references: list[CallableReference], *, method: bool = False
    ) -> None:
        self.plane = plane
        self.name = name
        self.target = target
        self.references = references
        self.method = method
        """A plain method of a class, called on any instance."""


def replace_references(declared: DeclaredCallable) -> FunctionType:
    """Replace every reference to the callable; raise UserError if that is impossible or a reference is left."""
    name, target = declared.name, declared.target
    if isinstance(target, type) or not callable(target):
        what = f"the class {target.__name__}" if isinstance(target, type) else f"of type {type(target).__name__}"
        raise ToolUnusable(
            f"{name!r} is {what}, which cannot be a tool", hint="name a function, a method or an instance"
        )
    replacement = _build_replacement(declared)
    for reference in declared.references:
        try:
            reference.put(reference.container, reference.key, replacement)
        except (AttributeError, TypeError) as broken:
            put_back(declared)
            raise ToolUnusable(f"{name!r} cannot be wrapped: {broken}", hint="wrap it in a Python function") from None
    strays = sorted(set(_find_strays(target, replacement)))
    if strays:
        put_back(declared)
        raise ToolUnusable(
            f"{name!r} is a {type(target).__name__} that is also held by {', '.join(strays)}; "
            "calls made there would miss the fault",
            hint="wrap it in a Python function and declare that",
        )
    return replacement


def put_back(declared: DeclaredCallable) -> None:
    """Restore the callable wherever it was replaced."""
    for reference in declared.references:
        try:
            reference.put(reference.container, reference.key, declared.target)
        except (AttributeError, TypeError):
            continue  # it was never replaced


def _build_replacement(declared: DeclaredCallable) -> FunctionType:
    target: Any = declared.target

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await target(*args, **kwargs)

    def call_plain(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    replacement: Any = call_async if inspect.iscoroutinefunction(target) else call_plain
    functools.update_wrapper(replacement, target)
    reference = declared.references[0]
    if isinstance(reference.container, ModuleType):  # lets it pickle by the name it now has
        replacement.__module__, replacement.__qualname__ = reference.container.__name__, reference.key
    for name in dir(target):
        if not name.startswith("__") and not hasattr(replacement, name):
            setattr(replacement, name, getattr(target, name))  # cache_clear and the like
    assert isinstance(replacement, FunctionType)
    return replacement


def _find_strays(target: Any, replacement: FunctionType) -> list[str]:
    """Return the places, other than those Holdfast replaced, that still refer to the callable."""
    own = {id(replacement.__dict__), id(replacement), *map(id, replacement.__closure__ or ())}
    strays = []
    for place in gc.get_referrers(target):  # a loop, because a comprehension would hold the callable in a cell
        if id(place) in own or isinstance(place, FrameType | DeclaredCallable):
            continue
        if isinstance(place, BuiltinMethodType | MethodType) and place.__self__ is target:
            continue  # a method of the callable itself, such as `cache_clear`
        strays.append(_describe_place(place, target))
    return strays


def _describe_place(place: Any, target: Any) -> str:
    if isinstance(place, dict):
        keys = ", ".join(str(key) for key, value in place.items() if value is target)
        return f"{_find_owner(place)} ({keys})"
    if isinstance(place, CellType):
        return "a closure"
    return f"a {type(place).__name__}"


def _find_owner(place: dict[Any, Any]) -> str:
    if isinstance(place.get("__name__"), str) and "__spec__" in place:
        return f"module {place['__name__']}"
    for holder in gc.get_referrers(place):
        if isinstance(holder, type):
            return f"class {holder.__name__}"
        if getattr(holder, "__dict__", None) is place:
            return f"a {type(holder).__name__}"
    return "a dict"
