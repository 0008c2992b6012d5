"""The function plane: declared tools and model functions of a Python agent, in the agent's process.

It is cooperative: the agent could bypass it. Reports say so.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import nullcontext
from types import FunctionType
from typing import Any, TypeAlias

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.planes.injection.faulted_call import FaultWaited, drive
from holdfast.planes.injection.weather import Weather
from holdfast.planes.open_call import OpenCall, build_exception, get_current_weather, get_open_calls
from holdfast.planes.swap import find_kind
from holdfast.planes.traced_call import TracedCall
from holdfast.protocols.fault import Call, Failed, Forward, Reply, Sleep

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
        self._kind = find_kind(original)
        self._wraps_coroutine = self._kind == "plain" and inspect.iscoroutinefunction(inspect.unwrap(original))
        self._signature: inspect.Signature | None = None

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        weather = get_current_weather()
        if weather is None or not self._is_concerned(args) or self.key in get_open_calls():
            return self.original(*args, **kwargs)  # a tool that calls itself is still one call by the agent
        if self._kind == "coroutine" or (self._wraps_coroutine and _is_loop_running()):
            return self._call_coroutine(weather, args, kwargs)
        if self._kind == "plain":
            return self._call_plain(weather, args, kwargs)
        return (self._call_generator if self._kind == "generator" else self._call_async_generator)(
            weather, args, kwargs
        )

    def _is_concerned(self, args: Args) -> bool:
        owner = self._owner
        if owner is None or (args and args[0] is owner):
            return True
        return isinstance(owner, type) and bool(args) and isinstance(args[0], type) and issubclass(args[0], owner)

    def _call_plain(self, weather: Weather, args: Args, kwargs: Kwargs) -> Any:
        async def forward(_: Call) -> Reply:
            return Reply(self._call_original(args, kwargs))

        call = self._begin(weather, args, kwargs)
        with OpenCall(weather, self.key), call.traced or nullcontext():
            return call.record(call.drive_faults(forward) if call.is_affected else self.original(*args, **kwargs))

    async def _call_coroutine(self, weather: Weather, args: Args, kwargs: Kwargs) -> Any:
        async def forward(_: Call) -> Reply:
            return Reply(await self.original(*args, **kwargs))

        call = self._begin(weather, args, kwargs)
        with OpenCall(weather, self.key), call.traced or nullcontext():
            if call.is_affected:
                return call.record(await call.apply_faults(forward, _sleep_async))
            return call.record(await self.original(*args, **kwargs))

    def _call_generator(self, weather: Weather, args: Args, kwargs: Kwargs) -> Iterator[Any]:
        async def forward(_: Call) -> Reply:
            return Reply(list(self.original(*args, **kwargs)))

        call = self._begin(weather, args, kwargs)
        if not call.is_affected:
            items = iter(self.original(*args, **kwargs))
            return items if call.traced is None else _trace_items(call.traced, items)
        with OpenCall(weather, self.key), call.traced or nullcontext():
            return iter(call.record(_to_list(call.drive_faults(forward))))

    async def _call_async_generator(self, weather: Weather, args: Args, kwargs: Kwargs) -> AsyncIterator[Any]:
        async def forward(_: Call) -> Reply:
            return Reply([item async for item in self.original(*args, **kwargs)])

        call = self._begin(weather, args, kwargs)
        if not call.is_affected:
            with call.traced or nullcontext():
                async for item in self.original(*args, **kwargs):
                    yield item
            return
        with OpenCall(weather, self.key), call.traced or nullcontext():
            items = call.record(_to_list(await call.apply_faults(forward, _sleep_async)))
        for item in items:
            yield item

    def _begin(self, weather: Weather, args: Args, kwargs: Kwargs) -> _HookedCall:
        """Count a call, and begin its trace if something observes it."""
        n = weather.count(*self.key)
        is_affected = bool(weather.find_applicable(*self.key)) or (self._is_tool and weather.replays_functions)
        call_trace = weather.call_trace
        number = 0 if call_trace is None else call_trace.take_number()
        if call_trace is None or not number:
            return _HookedCall(self, weather, args, kwargs, n, is_affected)
        traced = TracedCall(call_trace, number, *self.key, n, self.bind_arguments(args, kwargs))
        return _HookedCall(self, weather, args, kwargs, n, is_affected, traced)

    def _call_original(self, args: Args, kwargs: Kwargs) -> Any:
        """Return the value of a plain function, in a form that can leave a coroutine."""
        try:
            value = self.original(*args, **kwargs)
        except StopIteration as stop:  # would become a RuntimeError when it leaves the coroutine
            raise _CarriedStop(stop) from None
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise HarnessError(
                f"{self.key[1]!r} is not async but returns an awaitable; declare the async function instead",
                code="tool-unusable",
            )
        return value

    def bind_arguments(self, args: Args, kwargs: Kwargs) -> dict[str, Any]:
        """Return the arguments by name, including defaults, without the object that a method is called on."""
        if self._signature is None:
            self._signature = inspect.signature(self.original)
        signature = self._signature
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the function itself will reject this call
            return {**{str(i): a for i, a in enumerate(args)}, **kwargs}
        bound.apply_defaults()
        arguments_by_name = dict(bound.arguments)
        if self._method:
            arguments_by_name.pop(next(iter(signature.parameters), ""), None)
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                arguments_by_name.update(arguments_by_name.pop(name, {}))
        return arguments_by_name


class _HookedCall(Struct, eq=False):
    """One call of a wrapped function."""

    hook: Hook
    weather: Weather
    args: Args
    kwargs: Kwargs
    n: int
    is_affected: bool
    """Whether a fault, or a recording, may act on it."""
    traced: TracedCall | None = None
    """Its trace, if something observes it."""

    def record(self, value: Any) -> Any:
        """Record the value in the trace, and return it."""
        if self.traced is not None:
            self.traced.record_value(value)
        return value

    def drive_faults(self, forward: Forward) -> Any:
        """Return the value of a function that is not async, after its faults."""
        try:
            return drive(self.apply_faults(forward, _sleep_blocking))
        except _CarriedStop as stopped:
            raise stopped.stop from None
        except FaultWaited as waited:
            self.weather.on_error(waited)
            raise

    async def apply_faults(self, forward: Forward, sleep: Sleep) -> Any:
        """Return the value after the faults; raise what the agent must see."""
        call = Call(*self.hook.key, self.hook.bind_arguments(self.args, self.kwargs), self.n)
        modes, sent = (None, None) if self.traced is None else (self.traced.expect_faults(), self.traced.mark_sent)
        try:
            return (await self.weather.inject(call, forward, sleep, modes=modes, sent=sent)).value
        except Failed as failure:
            raised = build_exception(failure)
            raise raised from raised.__cause__  # a recorded exception has its own traceback
        except HarnessError as broken:
            self.weather.on_error(broken)
            raise


class _CarriedStop(Exception):
    """Carries a tool's StopIteration out of a coroutine."""

    def __init__(self, stop: StopIteration) -> None:
        super().__init__(str(stop))
        self.stop = stop


def _trace_items(traced: TracedCall, items: Iterator[Any]) -> Generator[Any, Any, Any]:
    """Yield the same items, pass on sent values, and report the end to the trace."""
    with traced:
        return (yield from items)


def _is_loop_running() -> bool:
    """Return whether an event loop is running in this thread; if so, a wrapped coroutine function is awaited."""
    from asyncio import _get_running_loop

    return _get_running_loop() is not None


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


async def _sleep_blocking(ms: float) -> None:
    time.sleep(ms / 1000)  # noqa: ASYNC251  # a plain function blocks, as the real slow tool would


async def _sleep_async(ms: float) -> None:
    from asyncio import sleep

    await sleep(ms / 1000)
