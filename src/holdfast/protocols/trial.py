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


class TrialContext(Protocol):
    """What agents and planes know of the trial they serve: how it is asked, its ledger and its trace."""

    trial: Trial
    nearby: Mapping[tuple[str, int], tuple[str, int]]
    """Hosts and ports that stand for services of this trial, and where those really are."""

    stormy: bool
    """Its scenario has faults."""
    user_s: float
    """Seconds that a simulated user took so far: they are not the agent's time."""

    watch: Callable[[str], None] | None
    """Hears the type of each event of the trace, as it is told."""

    limit: str
    """Which of `agent.limits` the agent has passed, in words; empty if none."""

    on_limit: Callable[[], None] | None
    """Called once when it does."""

    @property
    def limited(self) -> bool:
        """Whether it has limits."""
        ...

    @property
    def replayed(self) -> bool:
        """Calls of tools are answered from a recording, which needs nobody on the other side."""
        ...

    def ask(self, turn: str) -> str:
        """The turn as the agent is to be asked it: context attacks on the input are applied here."""
        ...

    async def next_turn(self, task: Task, turns: Sequence[Turn]) -> str | None:
        """What is asked after these turns; None: nothing more. HarnessError if a simulated user cannot go on."""
        ...

    def lost(self) -> None:
        """What the last `ask` put in had no place in the request: the agent met none of it."""
        ...

    def met(self, fault: FaultMet) -> None:
        """Enters a firing into the trial's ledger, as soon as it is known."""
        ...

    def amend(self, fault: FaultMet) -> None:
        """Enters what became of a firing: in the place of the last entry of that injection on that call."""
        ...

    def took(self, use: RecordedUse) -> None:
        """Enters what a call was given of the trial's recording, before it is given."""
        ...

    def saw(self, event: TraceEvent) -> None:
        """Enters a call into the trial's trace, when it has ended."""
        ...

    def turned_away(self, host: str, kind: str) -> None:
        """A call beside the agent's work was refused: telemetry, an update, a sign-in. It is told apart."""
        ...

    @property
    def side_calls(self) -> str:
        """Those calls in words; empty if there was none."""
        ...

    def unread_model(self, host: str, speaks: str, failed: str = "") -> None:
        """The agent asked a host for a model in a format that Holdfast does not read. If it `failed` there: an error of
        the set-up, unless the agent asks another model."""
        ...

    def traced(self) -> Sequence[TraceEvent]:
        """The trace so far, in the order in which the calls began."""
        ...

    def found(self, found: WorldFindings) -> None:
        """What was found in the world that the agent left."""
        ...

    def seen(self, answer: Answer) -> Observation:
        """All there is to judge, if it ends now with this answer."""
        ...

    def now(self) -> float:
        """Seconds since the trial began, for the trace."""
        ...

    def broke(self, why: str) -> None:
        """A failure that is ours or a provider's, and was not injected: the trial's fails become errors."""
        ...

    def reached(self, at: str) -> None:
        """A call went well there."""
        ...

    def note(self, text: str) -> None:
        """Something the reader of the report should know of this trial; each text once."""
        ...

    def count(self, plane: str, target: str) -> int:
        """Counts an attempt as it arrives at a target; which one it is, from 1."""
        ...

    def activity(self) -> int:
        """A number that grows with every call and every fault that the planes have seen of this trial."""
        ...

    def met_by(self, plane: str, target: str, n: int) -> str:
        """The modes of the faults that this call met, joined by `+`."""
        ...

    def undelivered(
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
        """What faults made of this call's reply, or only this injection or these parts of the delivery, did not reach
        the client: it met none of them.

        A delay counts all the same, for it was felt, unless `waits`: it began with nobody there. If only the beginning
        of the reply was `read`, that goes for attacks whose canaries are not in it.
        """
        ...

    def overlapped(self) -> None:
        """Calls were under way at the same time: the order of faults may differ between runs."""
        ...

    def faces(self, plane: str, target: str) -> bool:
        """Whether any fault of the scenario, or the trial's recording, can act on calls to this target."""
        ...

    async def through(
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
        without them by the call's target; a call without a name is no tool's.

        `fits`: as in FaultContext, where the client may refuse a value. `receives`: where the agent's side does not
        get the value itself.

        Where no fault fires, or needs to see the reply, `untouched` is used instead of `forward`: what it gives is
        handed back as it is, so that a plane can let bytes pass unread.
        """
        ...
