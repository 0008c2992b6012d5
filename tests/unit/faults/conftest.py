"""Drives a fault without an event loop, as the function plane does on a plain tool."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from holdfast.protocols.fault import Call, FaultContext, Reply


@dataclass
class Meeting:
    """One firing of a fault: what came back, how often the tool was called, how long it slept."""

    fault: Any
    value: Any = None
    seed: int = 0
    n: int = 1
    arguments: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    plane: str = "tool"
    raises: Exception | None = None
    """The failure of the tool itself."""
    forwarded: int = 0
    slept_ms: float = 0.0

    def run(self) -> Any:
        call = Call(self.plane, "search", self.arguments, self.n)
        ctx = FaultContext(Random(self.seed), self._sleep, self.n, self.memory)
        coroutine = self.fault.apply(call, self._forward, ctx)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value.value
        raise AssertionError("the fault waited for something else")

    async def _forward(self, call: Call) -> Reply:
        self.forwarded += 1
        self.received = call.arguments
        if self.raises is not None:
            raise self.raises
        return Reply(self.value)

    async def _sleep(self, ms: float) -> None:
        self.slept_ms += ms


@pytest.fixture
def meeting() -> type[Meeting]:
    """A firing to be run, whose traces can be looked at."""
    return Meeting


@pytest.fixture
def meet() -> Callable[..., Any]:
    """What the agent gets when the fault meets this reply."""

    def run(fault: Any, value: Any = None, **more: Any) -> Any:
        return Meeting(fault, value, **more).run()

    return run


@pytest.fixture
def context() -> Callable[..., FaultContext]:
    """A context for attacks on the input."""

    async def no_sleep(ms: float) -> None:
        raise AssertionError("an attack on the input never waits")

    return lambda seed=0, n=1: FaultContext(Random(seed), no_sleep, n)
