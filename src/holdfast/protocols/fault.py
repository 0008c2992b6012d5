"""A fault on calls: of a tool, a model, an MCP server, a URL or a service. For example:

    @dataclass(frozen=True)
    class SoldOut:
        "The real reply, but the count in it is 0."

        traits: ClassVar[FaultTraits] = FaultTraits(see=("tool_faults.stale",))

        async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
            reply = await forward(call)
            return Reply({**reply.value, "left": 0})

`docs/extending.md` tells how such a plug-in is installed.
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
from holdfast.model.traits import Hunted as Hunted
from holdfast.model.traits import Rung as Rung
from holdfast.model.traits import Step as Step


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
        self.raises = ""
        """`module:Class` of the exception that was recorded; empty: as the injection says."""
        self.exception: BaseException | None = None
        """The exception that was recorded, where its class takes more than a message."""


class TimedOut(Failed):
    """Raised by a fault: no answer came in time. Of kind `hang`: none will ever come, and nothing is closed."""


class Dropped(Failed):
    """Raised by a fault: the connection or the reply was lost. Of kind `closed`: it ended in order, not by a reset."""


Forward: TypeAlias = Callable[[Call], Awaitable[Reply]]
"""Passes the call on, to the next fault or to the real thing."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for so many milliseconds."""
Fits: TypeAlias = Callable[[Any], bool]


class Received(Struct, frozen=True):
    """A reply as the agent's side gets it, once its plane has put it into form."""

    exact: Any
    """All of it; two replies for which this is equal cannot be told apart."""
    text: str
    """What can be read in it."""


Receives: TypeAlias = Callable[[Reply], Received]
"""Puts a reply into the form in which it arrives. Nothing is sent."""


def _anything(value: Any) -> bool:
    """Most clients take whatever comes."""
    return True


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
    idle: str = ""
    """Set by a fault that finds nothing to act on: why, for the ledger."""
    planted: str = ""
    """Set by an attack: the text that it puts into the reply. It is met only if some of that arrives."""
    fits: Fits = _anything
    """Whether the client takes a value in the reply's place: one that declares its results may refuse others."""


@runtime_checkable
class WireFault(Protocol):
    """Tools, LLM, HTTP, MCP: one call at a time."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply: ...


@runtime_checkable
class WatchingFault(WireFault, Protocol):
    """A WireFault that must also see calls it does not fire on (`stale` remembers replies)."""

    def watch(self, call: Call, reply: Reply, memory: dict[str, Any]) -> None: ...


USUAL = FaultTraits()
"""Of a fault that declares none."""


@runtime_checkable
class DeclaredFault(Protocol):
    """A fault, or its class, that declares traits."""

    traits: FaultTraits


@runtime_checkable
class ConfiguredFault(Protocol):
    """A fault whose settings decide over its traits."""

    def configured(self) -> FaultTraits:
        """Its traits with these settings."""
        ...


def read_traits(fault: object) -> FaultTraits:
    """The traits of a fault, or those of its class whatever the settings."""
    if isinstance(fault, ConfiguredFault) and not isinstance(fault, type):
        return fault.configured()
    return fault.traits if isinstance(fault, DeclaredFault) else USUAL


@runtime_checkable
class DelayingFault(Protocol):
    """A fault that holds its caller up for a time that is one of its settings."""

    delay_ms: float


@runtime_checkable
class TaskFault(Protocol):
    """Rewrites what is asked, before the agent is invoked."""

    def rewrite(self, text: str, ctx: FaultContext) -> str: ...
