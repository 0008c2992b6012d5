"""The surroundings of one trial, as faults, checks and agents see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.spec import AgentSpec
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent
from holdfast.protocols.sandbox import FileChange, Sandbox, Started, Stdio
from holdfast.protocols.service import Service
from holdfast.protocols.trial import TrialContext


class AnswerContent(Struct, frozen=True):
    """The content of a command's answer file: its beginning, or why there is none."""

    data: bytes = b""
    cut: bool = False
    absent: bool = False
    refused: str = ""


class AnswerFile(Protocol):
    """The file in which a command leaves its answer."""

    name: str

    def clear(self) -> None:
        """Remove an earlier answer before a turn, so that it is not mistaken for the turn's answer."""

    def read(self, limit: int) -> AnswerContent:
        """Read the file. Call it only after every process of the agent has ended."""


class ReachablePort(Protocol):
    """A loopback port of this machine that forwards to ports of a place."""

    port: int

    async def is_accepting(self, port: int) -> bool:
        """Return whether something there accepts connections at one of its ports."""

    async def close(self) -> None: ...


class Place(Protocol):
    """The place where an agent's programs run and reach the planes: this machine, or a sandbox."""

    folder: str
    """The folder of the agent's own files, as its programs see it."""
    sees: str
    """Where programs are searched, in words, for one that is not found."""
    own_files: str
    """Where the agent's own files are, in words, for a program that ends at its start."""
    boxed: bool
    """Whether it lacks this machine's devices, homes and displays."""
    environ: Mapping[str, str]
    """The environment of its programs."""

    def map_agent_paths(self, agent: AgentSpec) -> AgentSpec:
        """Return the agent's section with the paths of its files here."""

    def build_argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        """Return the program of a section, with its arguments.

        Raises AgentUnavailable if it is known to be missing.
        """

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Started:
        """Start a program with exactly this environment; raises AgentUnavailable if it cannot be executed."""

    async def forward(self, port: int) -> ReachablePort | None:
        """Forward a port on which a program listens; None if it is a port of this machine."""

    def serve_trial(self, context: TrialContext) -> AbstractContextManager[None]:
        """Attribute the calls of its programs to this trial, while the context manager is open."""

    async def close(self) -> None: ...


class Planes(Protocol):
    """The planes as programs reach them: at one address, which serves one trial at a time."""

    def serve_trial(self, context: TrialContext) -> AbstractContextManager[None]:
        """Attribute the calls that arrive there to this trial, while the context manager is open."""


class World(Protocol):
    """The surroundings of one trial: where its programs run, its services, its planes, what they left.

    Every trial has one. A BareWorld is this machine as it is: it has no sandbox, no services and no audit. A BoxedWorld
    has its own sandbox.
    """

    context: TrialContext
    audit_log: Path
    trace_log: Path
    """JSONL files that the agent cannot reach."""

    @property
    def root(self) -> Path:
        """The folder of the spec."""

    @property
    def trial(self) -> Trial: ...

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox; raises HarnessError if there is none."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment in which the agent was started."""

    @property
    def services(self) -> Mapping[str, Service]: ...

    @property
    def planes(self) -> Planes | None:
        """The planes of the agent, whatever programs it starts; None if there are none, or each place has its own."""

    @property
    def foreseen(self) -> dict[tuple[str, ...], object]:
        """Values that checks stored when the agent started, by check and subject: a check has no memory of its own."""

    @property
    def remembered(self) -> dict[tuple[str, ...], object]:
        """Values that checks store for all trials of the site, by check and subject."""

    @property
    def audit_gaps(self) -> Mapping[str, str]:
        """Kinds of events that the audit could not see, such as `http_calls`, and why: their absence proves nothing."""

    async def place(self) -> Place:
        """Return where this trial's programs run; opened when first used, closed with the world."""

    def time_left_s(self) -> float:
        """Return the rest of the trial's time, below 0 afterwards; infinite without a limit."""

    def on_output(self, data: bytes) -> None:
        """Receive the agent's output as it arrives."""

    def lend(self, name: str, content: bytes) -> str:
        """Put a file where programs of the agent can read it; returns its path as they see it."""

    def answer_file(self, name: str) -> AnswerFile:
        """Return the file in which the agent leaves its answer."""

    def view(self) -> Path:
        """Return the agent's files as a folder that programs of this machine may read.

        Without a sandbox the spec's folder.
        """

    def changes(self) -> Iterable[FileChange]:
        """Return how the agent changed the workspace since the snapshot, without the changes of faults."""

    def audit(self) -> Iterator[AuditEvent]:
        """Return the agent's actions in order; complete once the sandbox is frozen."""


@runtime_checkable
class Clocked(Protocol):
    """A world whose agent sees a clock that can be set at runtime."""

    def time(self) -> float:
        """Return the time on the agent's clock, in seconds since 1970."""

    async def set_clock(self, now: float, *, frozen: bool = False) -> None:
        """Set the agent's clock to this time; it continues from there unless it is frozen."""


@runtime_checkable
class WatchedClock(Protocol):
    """A world that observes whether the agent's programs read their clock."""

    @property
    def clock_changes(self) -> int:
        """How often the clock was set so far."""

    def read_clock_changes(self) -> frozenset[int] | None:
        """Return the changes after which a program read the clock before the next change; None if unknown."""
