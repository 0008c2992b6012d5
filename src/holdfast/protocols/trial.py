"""The parts of a trial that agents and planes use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from holdfast.model.delivery import DeliveryPart
from holdfast.model.observation import Answer, FaultMet, ForbiddenResult, Observation, ServiceExchange, Turn
from holdfast.model.scenario import Injection
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, Evidence, Isolation
from holdfast.protocols.fault import Call, Fits, Forward, Receives, Reply, Sleep


class WorldFindings(Struct, frozen=True):
    """The report of a world when its agent has ended."""

    evidence: dict[str, Evidence]
    audit: tuple[AuditEvent, ...]
    isolation: tuple[Isolation, ...]
    forbidden: tuple[ForbiddenResult, ...]
    missing_programs: tuple[str, ...] = ()
    """The missing programs, in the format of the observation."""


class Injector(Protocol):
    """Applies the faults of the trial's scenario to its calls, and keeps the ledger of those that fired."""

    has_faults: bool
    """Whether its scenario has faults."""

    @property
    def is_replay(self) -> bool:
        """Whether a recording answers tool calls, so no tool has to be running."""

    def rewrite_turn(self, turn: str) -> str:
        """Return the turn as the agent gets it: after the attacks on its input."""

    def drop_turn_attacks(self) -> None:
        """Withdraw what the last `rewrite_turn` added.

        The request has no place for it, so the agent met none of it.
        """

    def add_fault(self, fault: FaultMet) -> None:
        """Add a firing to the ledger, as soon as it is known."""

    def amend_fault(self, fault: FaultMet) -> None:
        """Replace the last entry of that injection on that call, because the outcome of the firing is known now."""

    def add_use(self, use: RecordedUse) -> None:
        """Add the recorded reply that a call is about to get."""

    def count(self, plane: str, target: str) -> int:
        """Count an attempt as it arrives at a target; returns its number, from 1."""

    def join_modes_met(self, plane: str, target: str, n: int) -> str:
        """Return the modes of the faults that this call met, joined by `+`."""

    def mark_undelivered(
        self,
        plane: str,
        target: str,
        n: int,
        why: str = "the client had disconnected",
        *,
        injection: Injection | None = None,
        parts: Collection[DeliveryPart] = (),
        waits: bool = False,
        read: str | None = None,
    ) -> None:
        """Record that the client did not receive what faults made of this call's reply, so it met none of them.

        With `injection` or `parts`, only that injection or those parts of the delivery are meant. A delay still counts,
        unless `waits`: it began when the client was gone. If the client `read` only the beginning of the reply, attacks
        whose canaries are in it count.
        """

    def mark_concurrent(self) -> None:
        """Record that calls overlapped: the order of faults may differ between runs."""

    def can_affect(self, plane: str, target: str) -> bool:
        """Return whether any fault of the scenario, or the trial's recording, can act on calls to this target."""

    async def inject(
        self,
        call: Call,
        forward: Forward,
        sleep: Sleep,
        *,
        untouched: Forward | None = None,
        retry: int = 0,
        fits: Fits | None = None,
        receives: Receives | None = None,
        names: Sequence[str] | None = None,
    ) -> Reply:
        """Pass a call on through every fault that is due; raises Failed if one makes it fail.

        In a replayed trial the recording answers instead of the tool. It may call the tool by any of these `names`,
        without them by the call's target; a call without a name is not a tool's. `fits`: as in FaultContext, where the
        client may refuse a value. `receives`: where the agent does not get the value itself. If no fault fires, or
        needs to see the reply, `untouched` is used instead of `forward`: its reply is returned as it is, so that a
        plane can let bytes pass unread.
        """


class EventWatcher(Protocol):
    """Starts the faults that wait for something the agent does."""

    def handle_event(self, event: str, write: bool = False) -> None:
        """Start the faults that wait for this type of event, or for this `write`."""

    async def settle_write(self) -> bool:
        """Let the faults act that wait for the agent's next write, whose reply has not arrived yet.

        Return whether one of them killed the agent.
        """

    async def finish_due(self) -> None:
        """Wait until the faults have acted that something the agent did has started."""


class TraceSink(Protocol):
    """Collects what is observed in the trial: calls, notes, harness errors, usage limits."""

    watcher: EventWatcher | None
    """Gets each event of the trace as it is added; None if no fault can wait for one."""
    limit: str
    """Which of `agent.limits` the agent has exceeded, in words; empty if none."""
    on_limit: Callable[[], None] | None
    """Called once when it exceeds a limit."""
    exchanges: list[Callable[[], ServiceExchange]]
    """Requests to services and their replies; each is read when the trial has ended."""

    @property
    def has_limits(self) -> bool: ...

    def add(self, event: TraceEvent) -> None:
        """Add a call to the trace, when it has ended."""

    def events(self) -> Sequence[TraceEvent]:
        """Return the trace so far, in the order in which the calls began."""

    def now(self) -> float:
        """Return the seconds since the trial began, for the trace."""

    def note(self, text: str) -> None:
        """Add a note for the reader of the report; each text once."""

    def add_error(self, why: str, code: str) -> None:
        """Add a failure of Holdfast or a provider that was not injected: the trial's fails become errors.

        `code` is one of `errors` in `model/codes.toml`.
        """

    def mark_answered(self, at: str) -> None:
        """Record that a call to this provider, origin or server succeeded."""

    def count_side_call(self, host: str, kind: str) -> None:
        """Count a rejected call that is not part of the agent's work: telemetry, an update, a sign-in."""

    @property
    def side_calls(self) -> str:
        """Those calls in words; empty if there were none."""

    def record_unread_model(self, host: str, speaks: str, failed: str = "") -> None:
        """Record that the agent asked a host for a model in a format that Holdfast does not read.

        If the call `failed`, it is an error of the set-up, unless the agent asks another model.
        """


class Turns(Protocol):
    """Decides what the agent is asked next."""

    user_s: float
    """Seconds that a simulated user took so far: they do not count as the agent's time."""
    is_restarted: bool
    """Whether the agent was killed and started again: its state is what it had left, so it is not reset."""
    earlier: tuple[Turn, ...]
    """The turns that it had answered before: they are not asked again."""

    def restart(self, turns: Sequence[Turn]) -> None:
        """Prepare to repeat the last of these turns: the agent was killed in it."""

    def choose_first(self, task: Task) -> str:
        """Return the first prompt; if the agent was started again, the prompt that it was killed at."""

    async def choose_next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        """Return the next prompt after the earlier turns and these; None if there is none.

        Raises HarnessError if a simulated user cannot continue.
        """


class TrialContext(Protocol):
    """A trial in progress, as agents and planes see it."""

    trial: Trial
    services: Mapping[tuple[str, int], tuple[str, int]]
    """Hosts and ports that represent services of this trial, and their real addresses."""
    findings: WorldFindings | None
    """The findings in the world that the agent left."""

    @property
    def injector(self) -> Injector: ...

    @property
    def sink(self) -> TraceSink: ...

    @property
    def turns(self) -> Turns: ...

    def observe(self, answer: Answer) -> Observation:
        """Return everything there is to judge, if the trial ends now with this answer."""

    def count_activity(self) -> int:
        """Return a number that increases with every call and every fault that the planes have seen in this trial."""
