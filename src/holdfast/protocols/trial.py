"""What agents and planes know of the trial that they serve."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from holdfast.model.delivery import DeliveryPart
from holdfast.model.observation import Answer, FaultMet, ForbiddenResult, Observation, Turn
from holdfast.model.scenario import Injection
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, Evidence, Isolation
from holdfast.protocols.fault import Call, Fits, Forward, Receives, Reply, Sleep


class WorldFindings(Struct, frozen=True):
    """What a world shows when its agent has ended."""

    evidence: dict[str, Evidence]
    audit: tuple[AuditEvent, ...]
    isolation: tuple[Isolation, ...]
    forbidden: tuple[ForbiddenResult, ...]
    missing_programs: tuple[str, ...] = ()
    """As the observation has them."""


class Injector(Protocol):
    """Applies the faults of the trial's scenario to its calls, and keeps the ledger of those that fired."""

    has_faults: bool
    """Its scenario has faults."""

    @property
    def is_replay(self) -> bool:
        """Tool calls are answered from a recording, so nobody has to be on the other side."""
        ...

    def rewrite_turn(self, turn: str) -> str:
        """The turn as the agent is asked it: after the attacks on its input."""
        ...

    def drop_turn_attacks(self) -> None:
        """What the last `rewrite_turn` added had no place in the request: the agent met none of it."""
        ...

    def add_fault(self, fault: FaultMet) -> None:
        """Adds a firing to the ledger, as soon as it is known."""
        ...

    def amend_fault(self, fault: FaultMet) -> None:
        """Replaces the last entry of that injection on that call: what became of the firing is known now."""
        ...

    def add_use(self, use: RecordedUse) -> None:
        """Adds what a call is about to get from the trial's recording."""
        ...

    def count(self, plane: str, target: str) -> int:
        """Counts an attempt as it arrives at a target; which one it is, from 1."""
        ...

    def modes_met(self, plane: str, target: str, n: int) -> str:
        """The modes of the faults that this call met, joined by `+`."""
        ...

    def mark_undelivered(
        self,
        plane: str,
        target: str,
        n: int,
        why: str = "the client had left",
        *,
        injection: Injection | None = None,
        parts: Collection[DeliveryPart] = (),
        waits: bool = False,
        read: str | None = None,
    ) -> None:
        """The client did not receive what faults made of this call's reply, so it met none of them.

        With `injection` or `parts`, only that injection or those parts of the delivery are meant. A delay counts all
        the same, unless `waits`: it began when nobody was there. If the client `read` only the beginning of the
        reply, attacks whose canaries are in it count.
        """
        ...

    def mark_concurrent(self) -> None:
        """Calls overlapped: the order of faults may differ between runs."""
        ...

    def affects(self, plane: str, target: str) -> bool:
        """Whether any fault of the scenario, or the trial's recording, can act on calls to this target."""
        ...

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
        """Passes a call on through every fault that is due; raises Failed where one makes it fail.

        In a replayed trial the recording answers in the tool's place. It may call the tool by any of these `names`,
        without them by the call's target; a call without a name is not a tool's.

        `fits`: as in FaultContext, where the client may refuse a value. `receives`: where the agent's side does not
        get the value itself.

        Where no fault fires, or needs to see the reply, `untouched` is used instead of `forward`: its reply is
        returned as it is, so that a plane can let bytes pass unread.
        """
        ...


class TraceSink(Protocol):
    """Collects what is observed in the trial: calls, notes, harness errors, usage limits."""

    watch: Callable[[str], None] | None
    """Called with the type of each event of the trace, as it is added."""
    limit: str
    """Which of `agent.limits` the agent has passed, in words; empty if none."""
    on_limit: Callable[[], None] | None
    """Called once when it does."""

    @property
    def has_limits(self) -> bool: ...

    def add(self, event: TraceEvent) -> None:
        """Adds a call to the trace, when it has ended."""
        ...

    def events(self) -> Sequence[TraceEvent]:
        """The trace so far, in the order in which the calls began."""
        ...

    def now(self) -> float:
        """Seconds since the trial began, for the trace."""
        ...

    def note(self, text: str) -> None:
        """Adds a note for the reader of the report; each text once."""
        ...

    def add_error(self, why: str, code: str) -> None:
        """Adds a failure of Holdfast or a provider that was not injected: the trial's fails become errors.

        `code` is one of `model/error_codes.py`.
        """
        ...

    def mark_answered(self, at: str) -> None:
        """A call to this provider, origin or server succeeded."""
        ...

    def count_side_call(self, host: str, kind: str) -> None:
        """A call that is not part of the agent's work was refused: telemetry, an update, a sign-in."""
        ...

    @property
    def side_calls(self) -> str:
        """Those calls in words; empty if there was none."""
        ...

    def unread_model(self, host: str, speaks: str, failed: str = "") -> None:
        """The agent asked a host for a model in a format that Holdfast does not read. If it `failed` there: an error of
        the set-up, unless the agent asks another model."""
        ...


class Turns(Protocol):
    """Says what the agent is asked next."""

    user_s: float
    """Seconds that a simulated user took so far: they are not the agent's time."""

    async def next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        """What is asked after these turns; None: nothing more. HarnessError if a simulated user cannot go on."""
        ...


class TrialContext(Protocol):
    """What agents and planes know of the trial that they serve."""

    trial: Trial
    services: Mapping[tuple[str, int], tuple[str, int]]
    """Hosts and ports that stand for services of this trial, and where those really are."""
    findings: WorldFindings | None
    """What was found in the world that the agent left."""

    @property
    def injector(self) -> Injector: ...

    @property
    def sink(self) -> TraceSink: ...

    @property
    def turns(self) -> Turns: ...

    def observe(self, answer: Answer) -> Observation:
        """All there is to judge, if the trial ends now with this answer."""
        ...

    def activity(self) -> int:
        """A number that grows with every call and every fault that the planes have seen of this trial."""
        ...
