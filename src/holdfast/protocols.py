"""All extension points. Structural: a plug-in inherits from nothing.

A plug-in is a frozen dataclass. Its fields are its settings and, with their annotations, the
configuration schema too; the first line of its docstring is its entry in the catalogue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from holdfast.model.delivery import AS_IT_IS, Delivery
from holdfast.model.observation import Answer, FaultMet, Observation, Turn
from holdfast.model.run import Run
from holdfast.model.spec import Injection, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Judged, Trial
from holdfast.model.verdict import Finding


# -- faults -------------------------------------------------------------------------------------
class Call(Struct, frozen=True):
    """One call of the agent on its way out: to a tool, a model, a URL."""

    plane: str
    target: str
    arguments: Mapping[str, Any]
    n: int
    """Which call at this target it is, from 1."""


class Reply(Struct, frozen=True):
    """What comes back: any Python value on the function plane, decoded data elsewhere."""

    value: Any
    delivery: Delivery = AS_IT_IS
    """How it is sent. A fault that makes a new reply of the value leaves this out and keeps what there was."""


class Failed(Exception):
    """Raised by a fault: the call fails. Each plane turns it into its own kind of failure."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        body: Any = None,
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        """What a provider calls such an error, where the status does not say it: overloaded, quota, context_length."""
        self.retry_after_s = retry_after_s
        self.body = body
        self.injection: Injection | None = None
        """Set by the plane: the injection whose doing it is."""


class TimedOut(Failed):
    """Raised by a fault: no answer came in time. Of kind `hang`: none will ever come, and nothing is closed."""


class Dropped(Failed):
    """Raised by a fault: the connection or the reply was lost. Of kind `closed`: it ended in order, not by a reset."""


Forward: TypeAlias = Callable[[Call], Awaitable[Reply]]
"""Passes the call on, to the next fault or to the real thing."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for so many milliseconds."""


@dataclass
class FaultContext:
    """The only luck, time and state a fault may use."""

    rng: Random
    """Seeded for this firing: the same call draws the same luck on any machine."""
    sleep: Sleep
    """Waits for so many milliseconds. The ledger has the firing before the wait begins."""
    n: int
    """How often this injection has fired in this trial, this firing included."""
    memory: dict[str, Any] = field(default_factory=dict)
    """Kept per trial and injection."""


class WireFault(Protocol):
    """Tools, LLM, HTTP, MCP: one call at a time."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply: ...


@runtime_checkable
class WatchingFault(WireFault, Protocol):
    """A WireFault that must also see calls it does not fire on (`stale` remembers replies)."""

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None: ...


class TaskFault(Protocol):
    """Rewrites what is asked, before the agent is invoked."""

    def rewrite(self, text: str, ctx: FaultContext) -> str: ...


# -- checks -------------------------------------------------------------------------------------
class Exhibit(Struct, frozen=True):
    """What a check may look at: one turn's text, with the whole observation around it."""

    text: str
    """The text under judgement; empty only if the check does not read text."""
    turn: Turn
    observation: Observation
    control: Observation | None = None
    """The calm answer to the same task, for checks with `needs_control`."""


class Check(Protocol):
    """Judges one exhibit. Pure: the same exhibit gives the same finding."""

    polarity: ClassVar[Literal["positive", "negative"]]
    """Positive asks for something to be there, negative for something not to be there.
    With no text a positive check fails and a negative one is unproven."""
    reads: ClassVar[Literal["text", "ending", "latency", "trace"]]
    """What it judges. A check of the trace is asked once a trial, whatever the agent said."""

    def decide(self, exhibit: Exhibit) -> Finding: ...


# -- agents -------------------------------------------------------------------------------------
class Trip(Protocol):
    """What surrounds one trial, for the agent to run in. The world's seam."""

    trial: Trial

    def ask(self, turn: str) -> str:
        """The turn as the agent is to be asked it: context attacks on the input are applied here."""
        ...

    def lost(self) -> None:
        """What the last `ask` put in had no place in the request: the agent met none of it."""
        ...

    def met(self, fault: FaultMet) -> None:
        """Enters a firing into the trial's ledger, as soon as it is known."""
        ...

    def saw(self, event: TraceEvent) -> None:
        """Enters a call into the trial's trace, when it has ended."""
        ...

    def now(self) -> float:
        """Seconds since the trial began, for the trace."""
        ...

    def broke(self, why: str) -> None:
        """A failure that is ours or a provider's, and was not injected: the trial's fails become errors."""
        ...

    def note(self, text: str) -> None:
        """Something the reader of the report should know of this trial; each text once."""
        ...

    def count(self, plane: str, target: str) -> int:
        """Counts an attempt as it arrives at a target; which one it is, from 1."""
        ...

    def met_by(self, plane: str, target: str, n: int) -> str:
        """The modes of the faults that this call met, joined by `+`."""
        ...

    def undelivered(self, plane: str, target: str, n: int) -> None:
        """The client had left before anything of this call's reply reached it: it met none of its faults."""
        ...

    def overlapped(self) -> None:
        """Calls were under way at the same time: the order of faults may differ between runs."""
        ...

    def faces(self, plane: str, target: str) -> bool:
        """Whether any fault of the scenario can act on calls to this target."""
        ...

    async def through(
        self, call: Call, forward: Forward, sleep: Sleep, *, untouched: Forward | None = None, retry: int = 0
    ) -> Reply:
        """Passes a call on through every fault that is due; raises Failed where one makes it fail.

        Where no fault fires, or needs to see the reply, `untouched` is used instead of `forward`: what it gives is
        handed back as it is, so that a plane can let bytes pass unread.
        """
        ...


class Agent(Protocol):
    """The thing under test, behind one method. May raise: that is a result."""

    async def run(self, task: Task, trip: Trip) -> Answer: ...

    async def reset(self, trial: Trial) -> None:
        """Called before every trial if the spec names a reset; raises HarnessError if it fails."""
        ...

    async def close(self) -> None: ...


# -- stages -------------------------------------------------------------------------------------
class Planner(Protocol):
    """Pure: what to run next, given what has been judged; `[]` ends the run."""

    def next(self, judged: Judged) -> Sequence[Trial]: ...


class Reporter(Protocol):
    """Pure, so that a golden test is one comparison."""

    def render(self, run: Run) -> Mapping[str, bytes]: ...
