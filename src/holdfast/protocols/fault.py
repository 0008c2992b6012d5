"""A fault on calls: of a tool, a model, an MCP server, a URL or a service. For example:

    @dataclass(frozen=True)
    class SoldOut:
        "The real reply, but the count in it is 0."

        traits: ClassVar[FaultTraits] = FaultTraits(see=("tool_faults.stale",))

        async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
            reply = await forward(call)
            return Reply({**reply.value, "left": 0})

`docs/extending.md` shows how to install such a plug-in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from holdfast.model.delivery import AS_IT_IS, Delivery
from holdfast.model.scenario import Injection
from holdfast.model.traits import FaultTraits as FaultTraits
from holdfast.model.traits import HuntUse as HuntUse
from holdfast.model.traits import Rung as Rung
from holdfast.model.traits import Step as Step

# The sentences of the trait `met` that several faults share.
MET_WAIT = "The delay began while the caller was connected, even if the caller then gave up."
MET_LOSS = "The caller was connected when the connection was lost."
MET_CANARY = "The attack's canary or part of its text reached the agent."
MET_SIZE = "A byte of the reply was held back for at least a millisecond, cut off, or sent separately."
MET_CLOCK = "A program of the agent read the clock after the change."
MET_STATEMENT = "The client sent the statement and was still connected for the answer."


class Call(Struct, frozen=True):
    """One call of the agent on its way out: to a tool, a model, a URL."""

    plane: str
    target: str
    arguments: Mapping[str, Any]
    n: int
    """The number of the call at this target, from 1."""


class Reply(Struct, frozen=True):
    """The reply to a call: any Python value on the function plane, decoded data elsewhere."""

    value: Any
    delivery: Delivery = AS_IT_IS
    """How it is sent. A fault that makes a new reply omits this and keeps the original delivery."""


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
        """The provider's word for such an error, if the status does not imply it: overloaded, quota, context_length."""
        self.retry_after_s = retry_after_s
        self.body = body
        self.injection: Injection | None = None
        """The injection that caused it; the plane sets it."""
        self.raises = ""
        """`module:Class` of the recorded exception; empty to follow the injection."""
        self.exception: BaseException | None = None
        """The recorded exception, if its class takes more than a message."""


class TimedOut(Failed):
    """Raised by a fault: no answer arrived in time. With kind `hang`, none will ever arrive, and nothing is closed."""


class Dropped(Failed):
    """Raised by a fault: the connection or the reply was lost. With kind `closed`, it ended without a reset."""


Forward: TypeAlias = Callable[[Call], Awaitable[Reply]]
"""Passes the call on, to the next fault or to the real target."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for this many milliseconds."""
Fits: TypeAlias = Callable[[Any], bool]


class ReceivedReply(Struct, frozen=True):
    """A reply as the agent receives it, in the format of its plane."""

    exact: Any
    """The complete reply; two replies with equal values cannot be distinguished."""
    text: str
    """The readable text in it."""


Receives: TypeAlias = Callable[[Reply], ReceivedReply]
"""Formats a reply as it would arrive, without sending it."""


@dataclass
class FaultContext:
    """The random generator, time and state that a fault may use."""

    rng: Random
    """Seeded for this firing: the same call gives the same random draws on any machine."""
    sleep: Sleep
    """Waits for this many milliseconds. The ledger has the firing before the wait begins."""
    n: int
    """How often this injection has fired in this trial, including this firing."""
    memory: dict[str, Any] = field(default_factory=dict)
    """State of this injection, stored for the duration of the trial."""
    idle: str = ""
    """Set by a fault that finds nothing to act on: the reason, for the ledger."""
    waiting: str = "a delay"
    """The ledger's word for a wait; a fault that never answers sets it to `a hang`."""
    planted: str = ""
    """Set by an attack: the text that it puts into the reply. The attack is met only if some of it arrives."""
    fits: Fits = field(default=lambda value: True)
    """Whether the client accepts a value instead of the reply: one that declares its results may reject others."""


@runtime_checkable
class WireFault(Protocol):
    """A fault on single calls: tools, LLM, HTTP, MCP."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply: ...


@runtime_checkable
class WatchingFault(WireFault, Protocol):
    """A WireFault that must also see calls it does not fire on (`stale` stores replies)."""

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None: ...


DEFAULT_TRAITS = FaultTraits()
"""The traits of a fault that declares none."""


@runtime_checkable
class DeclaredFault(Protocol):
    """A fault, or its class, that declares traits."""

    traits: FaultTraits


@runtime_checkable
class ConfiguredFault(Protocol):
    """A fault whose traits depend on its settings."""

    def configured(self) -> FaultTraits:
        """Return its traits with these settings."""


def read_traits(fault: object) -> FaultTraits:
    """Return the traits of a fault with its settings, or of its class."""
    if isinstance(fault, ConfiguredFault) and not isinstance(fault, type):
        return fault.configured()
    return fault.traits if isinstance(fault, DeclaredFault) else DEFAULT_TRAITS


@runtime_checkable
class DelayingFault(Protocol):
    """A fault that delays its caller by a time that is one of its settings."""

    delay_ms: float


@runtime_checkable
class TaskFault(Protocol):
    """Rewrites the task before the agent gets it."""

    def rewrite(self, text: str, ctx: FaultContext) -> str: ...
