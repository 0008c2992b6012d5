"""One firing of an MCP fault, on a call or on a listing."""

from __future__ import annotations

from random import Random
from typing import Any

from holdfast.protocols.fault import Call, FaultContext, Reply


class Firing:
    """`run` gives the value that comes back; look at `forwarded` afterwards."""

    def __init__(self, fault: Any, value: Any = "hello", *, raises: Exception | None = None) -> None:
        self.fault = fault
        self.value = value
        self.raises = raises
        self.forwarded: list[Call] = []
        self.memory: dict[str, Any] = {}

    def run(self, plane: str = "mcp", **arguments: Any) -> Any:
        ctx = FaultContext(Random(0), self._sleep, 1, self.memory)
        acting = self.fault.apply(Call(plane, "search", arguments, 1), self._forward, ctx)
        try:
            acting.send(None)
        except StopIteration as done:
            return done.value.value
        raise AssertionError("the fault waited for something else")

    async def _forward(self, call: Call) -> Reply:
        self.forwarded.append(call)
        if self.raises is not None:
            raise self.raises
        return Reply(self.value)

    async def _sleep(self, ms: float) -> None:
        raise AssertionError("no MCP fault waits")
