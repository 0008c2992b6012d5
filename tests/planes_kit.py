"""A trial without an agent, for tests of planes: real weather, a ledger and a trace to look at."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.execute.context import LiveContext
from holdfast.model.spec import Injection, Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial


class FakeContext(LiveContext):
    """`FakeContext([Injection("llm", "*", "rate_limit")])`: then look at `.ledger`, `.trace`, `.troubles`, `.notes`."""

    def __init__(self, injections: Sequence[Injection] = (), *, seed: int = 0, id: str = "0123456789ab") -> None:
        trial = Trial(id, "contract", "weather", Task(("What was the revenue?",)), seed=seed)
        super().__init__(trial, Scenario("weather", tuple(injections)))
