"""Calls in this process: their weather, those that are in progress, and the exceptions that faults raise in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import cache
from types import TracebackType
from typing import TypeAlias

from holdfast.errors import HarnessError, InjectedConnectionError, InjectedError
from holdfast.planes.injection.weather import Weather
from holdfast.planes.recorded_value import load_class
from holdfast.planes.traced_call import CallTrace
from holdfast.protocols.fault import Dropped, Failed, TimedOut

CallKey: TypeAlias = tuple[str, str]
"""A plane and a target on it."""

_task_weather: ContextVar[Weather | None] = ContextVar("holdfast_weather", default=None)
_inside: ContextVar[tuple[CallKey, ...]] = ContextVar("holdfast_inside", default=())
_weather: Weather | None = None  # for threads that the agent starts: they do not inherit the context


@contextmanager
def activate_weather(
    weather: Weather, on_error: Callable[[HarnessError], None], call_trace: CallTrace | None = None
) -> Iterator[None]:
    """Run the body in this weather. `on_error` receives harness errors, `call_trace` the agent's calls."""
    global _weather
    weather.on_error, weather.call_trace = on_error, call_trace
    outer, _weather = _weather, weather
    token = _task_weather.set(weather)
    try:
        yield
    finally:
        _task_weather.reset(token)
        _weather = outer


def get_current_weather() -> Weather | None:
    """Return the weather for this call, if a trial is in progress."""
    return _task_weather.get() or _weather


def get_open_calls() -> tuple[CallKey, ...]:
    """Return the calls that enclose this one."""
    return _inside.get()


class OpenCall:
    """One call in progress. Detects overlapping calls; a call made inside another one does not count."""

    __slots__ = ("_key", "_token", "_weather")

    def __init__(self, weather: Weather, key: CallKey) -> None:
        self._weather = weather
        self._key = key

    def __enter__(self) -> None:
        weather, around = self._weather, _inside.get()
        # registered before the check: of two simultaneous calls, at least one sees the other
        weather.in_flight.append(None)
        if not around and len(weather.in_flight) > 1:
            weather.concurrent = True
        self._token: Token[tuple[CallKey, ...]] = _inside.set((*around, self._key))

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._weather.in_flight.pop()
        _inside.reset(self._token)


def build_exception(failure: Failed) -> BaseException:
    """Return the exception the agent sees."""
    if failure.exception is not None:
        return failure.exception
    injection = failure.injection
    raises = failure.raises if injection is None else injection.raises
    if raises:
        return load_exception(raises)(str(failure))
    if isinstance(failure, TimedOut):
        return TimeoutError(str(failure))
    kind = InjectedConnectionError if isinstance(failure, Dropped) else InjectedError
    return kind(str(failure), status_code=failure.status, retry_after=failure.retry_after_s, body=failure.body)


@cache
def load_exception(path: str) -> type[BaseException]:
    """Return the exception class at `module:Class`; raise HarnessError if it cannot be used."""
    try:
        loaded = load_class(path)
    except Exception as broken:
        raise HarnessError(
            f"raises: {path} cannot be imported: {type(broken).__name__}: {broken}", code="exception-unusable"
        ) from broken
    if not (isinstance(loaded, type) and issubclass(loaded, BaseException)):
        raise HarnessError(f"raises: {path} is not an exception class", code="exception-unusable")
    try:
        loaded("a message")
    except Exception as broken:
        raise HarnessError(
            f"raises: {path} cannot be created from a message alone: {broken}", code="exception-unusable"
        ) from broken
    return loaded
