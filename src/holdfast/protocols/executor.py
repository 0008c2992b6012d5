"""What runs trials. For example:

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

from holdfast.model.observation import FaultMet, Observation
from holdfast.model.run_warning import RunNote
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial


class Executor(Protocol):
    """Runs trials, in this process or on other machines. Whatever it is, the same trials give the same verdicts."""

    @property
    def notes(self) -> tuple[RunNote, ...]:
        """What a report should say about where they ran."""
        ...

    @property
    def concurrency(self) -> int:
        """How many trials run at once."""
        ...

    def one_at_a_time(self) -> None:
        """From now on: the agent seems to keep state."""
        ...

    def execute(
        self,
        trials: Iterable[Trial],
        *,
        started: Callable[[Trial], None] | None = None,
        on_fault: Callable[[Trial, FaultMet], None] | None = None,
        on_call: Callable[[Trial, TraceEvent], None] | None = None,
        store: Callable[[Trial, Observation], Observation] | None = None,
    ) -> AsyncGenerator[tuple[Trial, Observation], None]:
        """Gives each trial once, with its observation, as they end; `store` is called before another is begun in its
        place, and what it returns is given. Trials are taken from `trials` only when there is a place for them.

        What is closed early leaves nothing running. Our own failure in a trial is the `error` of its observation.
        """
        ...

    async def close(self) -> None: ...
