"""The exception that a fault raises inside a Python agent: the spec's class, TimeoutError or InjectedError."""

from __future__ import annotations

from functools import cache

from holdfast.errors import HarnessError, InjectedConnectionError, InjectedError
from holdfast.protocols.fault import Dropped, Failed, TimedOut


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
    from holdfast.planes.recorded_value import load_class

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
