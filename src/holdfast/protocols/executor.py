"""Executors run trials. For example:

    class Cautious(LocalExecutor):
        "One trial after the other."

        @property
        def concurrency(self) -> int:
            return 1

`holdfast.testing.executors` is its conformance kit.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Protocol

from holdfast.model.codes import RunNote
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial


class Executor(Protocol):
    """Runs trials, in this process or on other machines. The same trials give the same verdicts everywhere."""

    @property
    def notes(self) -> tuple[RunNote, ...]:
        """Notes for the report about where the trials ran."""

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent trials."""

    def use_one_slot(self) -> None:
        """Run one trial at a time from now on, because the agent seems to keep state."""

    def execute(
        self,
        trials: Iterable[Trial],
        *,
        started: Callable[[Trial], None] | None = None,
        on_fault: Callable[[Trial, FaultMet], None] | None = None,
        on_call: Callable[[Trial, TraceEvent], None] | None = None,
        store: Callable[[Trial, Observation], Observation] | None = None,
    ) -> AsyncGenerator[tuple[Trial, Observation], None]:
        """Yield each trial once, with its observation, as it ends.

        It calls `store` before it starts the next trial in that place, and yields what `store` returns. It takes trials
        from `trials` only when there is a place for them. Closing it early leaves nothing running. A harness error in a
        trial is the `error` of its observation.
        """

    async def close(self) -> None: ...
