"""A trial without an agent, for tests of planes: real weather, a ledger and a trace to look at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.execute.context import LiveContext
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.task import RecordedResponse, RecordedUse, Recording, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.planes.injection.weather import Weather

ASKED = Task(("What was the revenue?",))


class FakeContext(LiveContext):
    """`FakeContext([Injection("llm", "*", "rate_limit")])`: then look at `.ledger`, `.trace`, `.troubles`, `.notes`."""

    def __init__(
        self,
        injections: Sequence[Injection] = (),
        *,
        seed: int = 0,
        id: str = "0123456789ab",
        task: Task = ASKED,
    ) -> None:
        trial = Trial(id, "contract", Scenario("weather", tuple(injections)), task, seed=seed)
        super().__init__(trial)

    @property
    def ledger(self) -> list[FaultMet]:
        return self.injector.ledger

    @property
    def recorded(self) -> list[RecordedUse]:
        return self.injector.uses

    @property
    def weather(self) -> Weather:
        return self.injector.weather

    @property
    def concurrent(self) -> bool:
        return self.weather.concurrent

    @property
    def trace(self) -> list[TraceEvent]:
        return self.sink.trace

    @property
    def troubles(self) -> list[str]:
        return self.sink.errors

    @property
    def notes(self) -> list[str]:
        return self.sink.notes


def answer(tool: str, response: Any = None, status: int = 200, latency_ms: float = 0.0) -> RecordedResponse:
    """A recorded response; the response is a value, not yet JSON."""
    return RecordedResponse(tool, json.dumps(response), status, latency_ms)


def replay(*responses: RecordedResponse, live: bool = False, prompt: str = "hello") -> Task:
    """A replayed session with these responses of its tools."""
    return Task((prompt,), "replay", recording=Recording("s1", responses, live))


def uses(seen: Sequence[RecordedUse]) -> list[tuple[str, int, int]]:
    """What the calls were given: tool, which response (0: unknown), status."""
    return [(use.tool, use.n, use.status) for use in seen]
