"""The function plane: declared tools and model functions of a Python agent, in the agent's process.

It is cooperative: the agent could bypass it. Reports say so.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from types import FunctionType, TracebackType
from typing import Any, TypeAlias, TypeVar

from holdfast.errors import HarnessError
from holdfast.planes.injection.raised_error import exception_of
from holdfast.planes.injection.weather import Weather
from holdfast.planes.open_call import OpenCall, Waited, current, drive, inside
from holdfast.planes.swap import kind_of
from holdfast.planes.traced_call import TracedCall
from holdfast.protocols.fault import Call, Failed, Forward, Reply

T = TypeVar("T")
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]


class Hook:
    """The hook that replaces a wrapped function."""

    def __init__(
        self, plane: str, name: str, original: FunctionType, owner: object | None = None, *, method: bool = False
    ) -> None:
        self.key = (plane, name)
        self._is_tool = plane == "tool"
        self.original = original
        self._owner = owner
        """The object that the function must be called on to count; None for any object."""
        self._method = method or owner is not None
        self._kind = kind_of(original)
        self._wraps_coroutine = self._kind == "plain" and inspect.iscoroutinefunction(inspect.unwrap(original))
        self._signature: inspect.Signature | None = None
        self._names = _plain_names(original, skip=self._method)

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        weather = current()
        if weather is None or not self._concerns(args) or self.key in inside():
            return self.original(*args, **kwargs)  # a tool that calls itself is still one call by the agent
        if self._kind == "coroutine" or (self._wraps_coroutine and _in_loop()):
            return self._coroutine(weather, args, kwargs)
        if self._kind == "plain":
            return self._plain(weather, args, kwargs)
        return (self._generator if self._kind == "generator" else self._async_generator)(weather, args, kwargs)

    def _concerns(self, args: Args) -> bool:
        owner = self._owner
        if owner is None or (args and args[0] is owner):
            return True
        return isinstance(owner, type) and bool(args) and isinstance(args[0], type) and issubclass(args[0], owner)

    def _plain(self, weather: Weather, args: Args, kwargs: Kwargs) -> Any:
        n, faced = weather.count(*self.key), weather.facing(*self.key) or (self._is_tool and weather.replays_functions)
        sight = self._sight(weather, n, args, kwargs)
        with OpenCall(weather, self.key), _Watched(sight) as watched:
            value = self._blocking(weather, n, args, kwargs, sight) if faced else self.original(*args, **kwargs)
            watched.gave(value)
        return value

    def _blocking(self, weather: Weather, n: int, args: Args, kwargs: Kwargs, sight: TracedCall | None) -> Any:
        async def forward(_: Call) -> Reply:
            return Reply(self._called(args, kwargs))

        try:
            return self._driven(weather, self._apply_faults(weather, n, args, kwargs, forward, _block, sight))
        except _Stopped as stopped:
            raise stopped.stop from None

    async def _coroutine(self, weather: Weather, args: Args, kwargs: Kwargs) -> Any:
        async def forward(_: Call) -> Reply:
            return Reply(await self.original(*args, **kwargs))

        n, faced = weather.count(*self.key), weather.facing(*self.key) or (self._is_tool and weather.replays_functions)
        sight = self._sight(weather, n, args, kwargs)
        with OpenCall(weather, self.key), _Watched(sight) as watched:
            if faced:
                value = await self._apply_faults(weather, n, args, kwargs, forward, _pause, sight)
            else:
                value = await self.original(*args, **kwargs)
            watched.gave(value)
        return value

    def _generator(self, weather: Weather, args: Args, kwargs: Kwargs) -> Iterator[Any]:
        async def forward(_: Call) -> Reply:
            return Reply(list(self.original(*args, **kwargs)))

        n, faced = weather.count(*self.key), weather.facing(*self.key) or (self._is_tool and weather.replays_functions)
        sight = self._sight(weather, n, args, kwargs)
        if not faced:
            items = iter(self.original(*args, **kwargs))
            return items if sight is None else _followed(sight, items)
        with OpenCall(weather, self.key), _Watched(sight) as watched:
            values = _items(self._driven(weather, self._apply_faults(weather, n, args, kwargs, forward, _block, sight)))
            watched.gave(values)
        return iter(values)

    async def _async_generator(self, weather: Weather, args: Args, kwargs: Kwargs) -> AsyncIterator[Any]:
        async def forward(_: Call) -> Reply:
            return Reply([item async for item in self.original(*args, **kwargs)])

        n, faced = weather.count(*self.key), weather.facing(*self.key) or (self._is_tool and weather.replays_functions)
        sight = self._sight(weather, n, args, kwargs)
        if not faced:
            with _Watched(sight) as watched:
                async for item in self.original(*args, **kwargs):
                    yield item
                watched.streamed()
            return
        with OpenCall(weather, self.key), _Watched(sight) as watched:
            items = _items(await self._apply_faults(weather, n, args, kwargs, forward, _pause, sight))
            watched.gave(items)
        for item in items:
            yield item

    async def _apply_faults(
        self,
        weather: Weather,
        n: int,
        args: Args,
        kwargs: Kwargs,
        forward: Forward,
        sleep: Any,
        sight: TracedCall | None,
    ) -> Any:
        call = Call(*self.key, self._arguments(args, kwargs), n)
        try:
            if sight is None:
                return (await weather.inject(call, forward, sleep)).value
            modes: dict[int, str] = {}
            sight.faces(modes)
            return (await weather.inject(call, forward, sleep, modes=modes, sent=sight.sent)).value
        except Failed as failure:
            raised = exception_of(failure)
            raise raised from raised.__cause__  # a recorded exception has its own traceback
        except HarnessError as ours:
            weather.broke(ours)
            raise

    def _sight(self, weather: Weather, n: int, args: Args, kwargs: Kwargs) -> TracedCall | None:
        """The call as the trace will record it; None if nothing observes it."""
        watch = weather.watch
        number = 0 if watch is None else watch.number()
        if watch is None or not number:
            return None
        names = self._names
        if names is None:
            arguments = self._arguments(args, kwargs)
        else:
            arguments = dict(zip(names, args))  # noqa: B905  # the trampoline hands on every one of them
            if kwargs:
                arguments.update(kwargs)
            if self._method:
                del arguments[names[0]]
        plane, name = self.key
        return TracedCall(watch, number, plane, name, n, arguments)

    def _driven(self, weather: Weather, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            return drive(coroutine)
        except Waited as waited:
            weather.broke(waited)
            raise

    def _called(self, args: Args, kwargs: Kwargs) -> Any:
        """The value of a plain function, in a form that can leave a coroutine."""
        try:
            value = self.original(*args, **kwargs)
        except StopIteration as stop:  # would become a RuntimeError when it leaves the coroutine
            raise _Stopped(stop) from None
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise HarnessError(
                f"{self.key[1]!r} is not async but returns an awaitable; declare the async function instead",
                code="tool-unusable",
            )
        return value

    def _arguments(self, args: Args, kwargs: Kwargs) -> dict[str, Any]:
        """The arguments by name, including defaults, without the object that a method is called on."""
        if self._signature is None:
            self._signature = inspect.signature(self.original)
        signature = self._signature
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the function itself will reject this call
            return {**{str(i): a for i, a in enumerate(args)}, **kwargs}
        bound.apply_defaults()
        named = dict(bound.arguments)
        if self._method:
            named.pop(next(iter(signature.parameters), ""), None)
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                named.update(named.pop(name, {}))
        return named


class _Watched:
    """Reports the end of the body to the trace, unless the body did so itself. A generator left early counts as
    finished.
    """

    def __init__(self, sight: TracedCall | None) -> None:
        self._sight = sight

    def gave(self, value: Any) -> None:
        if self._sight is not None:
            self._sight.gave(value)
            self._sight = None

    def streamed(self) -> None:
        if self._sight is not None:
            self._sight.streamed()
            self._sight = None

    def __enter__(self) -> _Watched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if raised is None or isinstance(raised, GeneratorExit):
            self.streamed()
        elif self._sight is not None:
            self._sight.failed(raised)


class _Stopped(Exception):
    """Carries a tool's StopIteration out of a coroutine."""

    def __init__(self, stop: StopIteration) -> None:
        super().__init__(str(stop))
        self.stop = stop


def _followed(sight: TracedCall, items: Iterator[Any]) -> Generator[Any, Any, Any]:
    """Yields the same items, passes on sent values, and reports the end to the trace."""
    with _Watched(sight):
        return (yield from items)


def _plain_names(function: FunctionType, *, skip: bool) -> tuple[str, ...] | None:
    """The parameters that the trampoline passes by position; None if only the signature can name them."""
    code = function.__code__
    if code.co_flags & inspect.CO_VARARGS or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return None
    return None if skip and not code.co_argcount else code.co_varnames[: code.co_argcount]


def _in_loop() -> bool:
    """Whether an event loop is running in this thread; if so, the wrapper of a coroutine function is awaited."""
    from asyncio import _get_running_loop

    return _get_running_loop() is not None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


async def _block(ms: float) -> None:
    time.sleep(ms / 1000)  # noqa: ASYNC251  # a plain function blocks, as the real slow tool would


async def _pause(ms: float) -> None:
    from asyncio import sleep

    await sleep(ms / 1000)
