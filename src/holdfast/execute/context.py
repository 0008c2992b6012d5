"""The context of a running trial, and the observation made from it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.execute.trace_sink import LiveSink, OnCall
from holdfast.model.codec import to_builtins
from holdfast.model.observation import Answer, Observation, Turn
from holdfast.model.spec import UsageLimits
from holdfast.model.task import Task
from holdfast.model.trial import Trial

if TYPE_CHECKING:
    from holdfast.execute.injector import LiveInjector, OnFault
    from holdfast.execute.simulated_users import TalkingUser
    from holdfast.protocols.trial import WorldFindings


class LiveTurns:
    """The Turns of a running trial: the written ones, then those of a simulated user."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self.user: TalkingUser | None = None
        """Who continues after the written turns."""
        self.user_s = 0.0

    async def choose_next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        limit = self._sink.limit
        if len(turns) < len(task.turns) and not limit:
            return task.turns[len(turns)]
        if limit or task.user is UNSET or len(turns) >= task.max_turns:
            return None
        if self.user is None:
            raise HarnessError("this task needs a simulated user, but none is available here", code="user-failed")
        began = perf_counter()
        try:
            return await self.user.reply(task, turns)
        finally:
            self.user_s += perf_counter() - began


class LiveContext:
    """The TrialContext of a running trial."""

    def __init__(
        self,
        trial: Trial,
        on_fault: OnFault | None = None,
        on_call: OnCall | None = None,
        limits: UsageLimits | None = None,
    ) -> None:
        self.trial = trial
        self.services: Mapping[tuple[str, int], tuple[str, int]] = {}
        self.findings: WorldFindings | None = None
        self.sink = LiveSink(trial, on_call, limits)
        self.turns = LiveTurns(self.sink)
        self.calls_made = ""
        """The progress of an agent that Holdfast stopped."""
        self._on_fault = on_fault
        self._injector: LiveInjector | None = None

    @property
    def injector(self) -> LiveInjector:
        """Created at first use: a calm inline agent, at a few microseconds per trial, never uses it."""
        if self._injector is None:
            from holdfast.execute.injector import LiveInjector

            self._injector = LiveInjector(self.trial, self.sink, self._on_fault)
        return self._injector

    def observe(
        self, answer: Answer, error: str | None = None, code: str = "", *, attempts: int = 1, simulated: bool = False
    ) -> Observation:
        """Return the complete observation; without an `error`, the harness errors so far become one.

        From here on every text of the agent can be stored.
        """
        sink, injector = self.sink, self._injector
        findings = None if self.findings is None else sink.make_storable(self.findings)
        answer = sink.make_storable(answer)
        weather = None if injector is None else injector.weather
        notes = sink.list_notes() if self.trial.task.recording is UNSET else self._list_replay_notes()
        took_s = perf_counter() - sink.began
        observation = Observation(
            trial=self.trial.id,
            turns=answer.turns,
            ledger=() if injector is None else tuple(injector.ledger),
            output=answer.output,
            notes=(*answer.notes, *notes),
            calls=self.count_calls(answer),
            concurrent=answer.concurrent or (weather is not None and weather.concurrent),
            unmatched=answer.unmatched if weather is None else answer.unmatched | weather.unmatched,
            at=round(time.time() - took_s, 6),
            trace=tuple(sink.events()) if sink.trace else (),
            evidence={} if findings is None else findings.evidence,
            audit=() if findings is None else findings.audit,
            isolation=() if findings is None else findings.isolation,
            forbidden=() if findings is None else findings.forbidden,
            missing_programs=() if findings is None else findings.missing_programs,
            recorded=() if injector is None else tuple(injector.uses),
            error=self._join_errors(answer) if error is None else error,
            error_code=code or sink.error_code,
            attempts=attempts,
            duration_ms=took_s * 1000,
            simulated=simulated,
            calls_made=self.calls_made,
        )
        if not sink.exchanges:
            return observation
        # Only the calm trials of hunts have exchanges; loading the codec of services would slow down every other run.
        from holdfast.planes.tcp.exchanges import hide_private_values

        exchanges = sorted((read() for read in sink.exchanges), key=lambda one: one.ts)
        return replace(observation, exchanges=hide_private_values(exchanges, to_builtins(observation)))

    def count_calls(self, answer: Answer) -> dict[str, int]:
        """Return the number of calls to each target, in the agent's process and at the planes."""
        calls = answer.calls if self._injector is None else answer.calls | self._injector.weather.calls
        return calls if self.sink.unread is None else calls | self.sink.unread

    def count_activity(self) -> int:
        injector = self._injector
        if injector is None:
            return len(self.sink.trace)
        return len(self.sink.trace) + len(injector.ledger) + sum(injector.weather.calls.values())

    def _list_replay_notes(self) -> Sequence[str]:
        from holdfast.planes.recorded_tools import write_replay_notes

        return [*self.sink.list_notes(), *write_replay_notes(self.trial.task, self.injector.uses)]

    def _join_errors(self, answer: Answer) -> str:
        """Return the failures of Holdfast or of a provider so far."""
        silent = self.sink.find_unanswered(answer) if self.sink.trace else ()
        return "; ".join(dict.fromkeys((*self.sink.errors, *silent)))
