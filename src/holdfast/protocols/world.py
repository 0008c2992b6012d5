"""What surrounds one trial, as faults, checks and agents see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.spec import AgentSpec
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent
from holdfast.protocols.sandbox import FileChange, Sandbox, Started
from holdfast.protocols.service import Service
from holdfast.protocols.trial import TrialContext

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


class Left(Struct, frozen=True):
    """What a command left in a file: its beginning, or why there is none."""

    data: bytes = b""
    cut: bool = False
    absent: bool = False
    refused: str = ""


class AnswerFile(Protocol):
    """The file in which a command leaves its answer."""

    name: str

    def clear(self) -> None:
        """Called before a turn: what is there now is no answer to it."""
        ...

    def read(self, limit: int) -> Left:
        """What is there now. Call it when every process of the agent's has ended."""
        ...


class ReachablePort(Protocol):
    """A loopback port of this machine that leads to ports of a place."""

    port: int

    async def leads(self, port: int) -> bool:
        """Whether something there accepts connections at a port of its own."""
        ...

    async def close(self) -> None: ...


class Place(Protocol):
    """Where programs of an agent run, and reach the planes: this machine, or a sandbox."""

    folder: str
    """Of the agent's own files, as its programs see it."""
    sees: str
    """Where programs are looked for, in words, for one that is not found."""
    own_files: str
    """Where the agent's own files are, in words, for a program that ends at its start."""
    boxed: bool
    """This machine's devices, homes and displays are not there."""
    environ: Mapping[str, str]
    """What its programs find in their environment."""

    def mounted(self, agent: AgentSpec) -> AgentSpec:
        """The section with the paths that its files have here."""
        ...

    def argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        """The program that a section names, with its arguments; AgentUnavailable if it is known not to be there."""
        ...

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: tuple[int, int, int]) -> Started:
        """Starts a program with just this environment; AgentUnavailable if it cannot be executed."""
        ...

    async def forward(self, port: int) -> ReachablePort | None:
        """The way to a port that a program listens on; None: it is a port of this machine's own."""
        ...

    def serving(self, context: TrialContext) -> AbstractContextManager[None]:
        """While this is open, the planes take the calls of its programs for those of this trial."""
        ...

    async def close(self) -> None: ...


class Planes(Protocol):
    """The planes as programs reach them: at one address, which serves one trial at a time."""

    def serving(self, context: TrialContext) -> AbstractContextManager[None]:
        """While this is open, calls that arrive there are those of this trial."""
        ...


class World(Protocol):
    """All that surrounds one trial: where its programs run, its services, its planes, what they left.

    Every trial has one. A BareWorld is this machine as it is: it has no sandbox, no service and no audit. A BoxedWorld
    has a sandbox of its own.
    """

    context: TrialContext
    audit_log: Path
    trace_log: Path
    """JSONL files that the agent cannot reach."""

    @property
    def root(self) -> Path:
        """The folder of the spec."""
        ...

    @property
    def trial(self) -> Trial: ...

    @property
    def sandbox(self) -> Sandbox:
        """HarnessError where there is none."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """What the agent was started with."""
        ...

    @property
    def services(self) -> Mapping[str, Service]: ...

    @property
    def planes(self) -> Planes | None:
        """Where its agent meets them, whatever programs it starts; None: nowhere, or each place has its own."""
        ...

    @property
    def foreseen(self) -> dict[tuple[str, ...], object]:
        """What checks noted when the agent started, by check and subject: a check has no memory of its own."""
        ...

    @property
    def remembered(self) -> dict[tuple[str, ...], object]:
        """What checks keep for all trials of the site, by check and subject."""
        ...

    @property
    def unseen(self) -> Mapping[str, str]:
        """What the audit could not see, as `http_calls`, and why: nothing can be concluded from its not being there."""
        ...

    async def place(self) -> Place:
        """Where this trial's programs run; opened when it is first asked for, closed with the world."""
        ...

    def time_left_s(self) -> float:
        """Until the trial's time is over, below 0 afterwards; infinite where it has no end."""
        ...

    def heard(self, data: bytes) -> None:
        """Something that the agent printed, as it came."""
        ...

    def lend(self, name: str, content: bytes) -> str:
        """Puts a file where programs of the agent can read it; its path as they see it."""
        ...

    def answer_file(self, name: str) -> AnswerFile:
        """The file in which the agent leaves its answer."""
        ...

    def view(self) -> Path:
        """What the agent left, as programs of this machine may read it; without a sandbox the folder of the spec."""
        ...

    def changes(self) -> Iterable[FileChange]:
        """How the agent changed the workspace since the snapshot; what a fault did there is left out."""
        ...

    def audit(self) -> Iterator[AuditEvent]:
        """What the agent did, in order; complete once the sandbox is frozen."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A world whose agent sees a clock that can be set while it runs."""

    def time(self) -> float:
        """What the agent's clock shows, in seconds since 1970."""
        ...

    async def set_clock(self, now: float, *, frozen: bool = False) -> None:
        """From now on the agent's clock shows this time, and goes on from there unless it is frozen."""
        ...


@runtime_checkable
class WatchedClock(Protocol):
    """A world that sees whether the agent's programs read their clock."""

    @property
    def clock_changes(self) -> int:
        """How often the clock was set so far."""
        ...

    def seen_clock_changes(self) -> frozenset[int] | None:
        """After which of these changes, and before the next one, a program read it; None if that cannot be seen."""
        ...
