"""Exchanges the code of a Python function, so that every reference to it meets the hook.

Aliases, partials, closures and `from x import f` all hold the same function object; only its code
object changes. The trampoline has the function's own parameters, so its signature stays; it carries
the hook as a constant, since it runs with the function's own globals; and it names the function's
free variables, since a code object must have as many.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from holdfast.errors import UserError

_MARK = "holdfast hook"

_BODIES = {
    "plain": "return {hook}",
    "coroutine": "return await {hook}",
    "generator": "yield from {hook}",
    "async_generator": "async for _holdfast_item in {hook}: yield _holdfast_item",
}


def kind_of(function: Callable[..., Any]) -> str:
    """plain, coroutine, generator or async_generator."""
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    if inspect.isasyncgenfunction(function):
        return "async_generator"
    return "generator" if inspect.isgeneratorfunction(function) else "plain"


def exchange(function: FunctionType, make_hook: Callable[[FunctionType], Callable[..., Any]]) -> FunctionType:
    """Puts a hook in place of the function's code; a twin with the old code is returned.

    `make_hook` gets the twin and returns `hook(args, kwargs)`: the value of a plain function, an
    awaitable, an iterator or an async iterator for the other kinds.
    """
    if function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
        raise UserError(f"{function.__qualname__} is a coroutine made of a generator", hint="write it as async def")
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__dict__.update(function.__dict__)
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    function.__code__ = _trampoline(function.__code__, kind_of(twin), make_hook(twin))
    return twin


def restore(function: FunctionType, twin: FunctionType) -> None:
    """Gives the function its own code back."""
    function.__code__ = twin.__code__


def _trampoline(code: CodeType, kind: str, hook: Callable[..., Any]) -> CodeType:
    head, positional, named = _parameters(code)
    word = "async def" if kind in ("coroutine", "async_generator") else "def"
    body = _BODIES[kind].format(hook=f"({_MARK!r})({positional}, {named})")
    lines = ["def outer():", *(f"    {name} = None" for name in code.co_freevars), f"    {word} inner({head}):"]
    if code.co_freevars:
        lines.append(f"        if 0: {', '.join(code.co_freevars)}")  # named, never read: a cell may be empty
    inner = _compile("\n".join([*lines, f"        {body}", "    return inner"]))
    return inner.replace(
        co_consts=tuple(hook if const == _MARK else const for const in inner.co_consts),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def _parameters(code: CodeType) -> tuple[str, str, str]:
    """The parameter list, and how the arguments are handed on: by position, and by name."""
    names, at = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
    positional, keyword = list(names[: code.co_argcount]), names[code.co_argcount : at]
    head, passed, named = [*positional], [*positional], [f"{name!r}: {name}" for name in keyword]
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
        named.append(f"**{names[at]}")
    return ", ".join(head), f"({''.join(f'{name}, ' for name in passed)})", f"{{{', '.join(named)}}}"


def _compile(source: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # calling a string: it is a place holder
        module = compile(source, "<holdfast>", "exec", dont_inherit=True)
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    return next(c for c in outer.co_consts if isinstance(c, CodeType))
