"""All extension points. Structural: a plug-in inherits from nothing.

A plug-in is a frozen dataclass. Its fields are its settings and, with their annotations, the
configuration schema too; the first line of its docstring is its entry in the catalogue.

Over 400 lines, since whoever writes a plug-in finds every contract here and imports from one place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from holdfast.model.delivery import AS_IT_IS, Delivery, DeliveryPart
from holdfast.model.exhibit import Exhibit as Exhibit
from holdfast.model.observation import Answer, FaultMet, ForbiddenResult, Observation, Turn
from holdfast.model.run import Run
from holdfast.model.spec import AgentSpec, Injection
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits as CheckTraits
from holdfast.model.traits import Disturbed
from holdfast.model.traits import FaultTraits as FaultTraits
from holdfast.model.traits import ServiceRead as ServiceRead
from holdfast.model.traits import Step as Step
from holdfast.model.trial import Judged, Trial
from holdfast.model.verdict import Finding
from holdfast.model.world import AuditEvent, Evidence, Isolation, Resources, SandboxTraits, ServiceSpec, ServiceTraits

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path
    from socket import socket
    from urllib.parse import SplitResult


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
        self.raises = ""
        """`module:Class` of the exception that was recorded; empty: as the injection says."""


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


# -- checks -------------------------------------------------------------------------------------
class Check(Protocol):
    """Judges one exhibit. Pure: the same exhibit gives the same finding."""

    traits: ClassVar[CheckTraits]

    def decide(self, exhibit: Exhibit) -> Finding: ...


@runtime_checkable
class CodesTrait(Protocol):
    """A check that gives its findings codes. Without this trait failures are grouped by what stays in their reasons."""

    codes: ClassVar[Mapping[str, str]]
    """Each code of a finding, in kebab-case, and what it means."""


@runtime_checkable
class ConfiguredCheck(Protocol):
    """A check whose settings decide over its traits."""

    def configured(self) -> CheckTraits:
        """Its traits with these settings."""
        ...


def check_traits(check: Check) -> CheckTraits:
    """The traits of a check with its settings."""
    return check.configured() if isinstance(check, ConfiguredCheck) else check.traits


@runtime_checkable
class FastidiousPlugin(Protocol):
    """A plug-in whose settings may not fit together."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Each setting that does not fit, and why: they become errors of the spec."""
        ...


@runtime_checkable
class AdvisingCheck(Protocol):
    """A check that warns of settings that probably do not mean what their author thinks."""

    def lint(self) -> Iterable[tuple[str, str, str]]:
        """The code of each warning, the setting, and the words."""
        ...


@runtime_checkable
class TableCheck(Protocol):
    """A check of tables of a database."""

    def tables_read(self) -> Iterable[tuple[str, str]]:
        """Each setting that names a table without its database, and the table."""
        ...


# -- the world ----------------------------------------------------------------------------------
class Stdio(Struct, frozen=True):
    """Descriptors for a program's stdin, stdout and stderr; the caller closes its own copies."""

    stdin: int
    stdout: int
    stderr: int


class Started(Protocol):
    """A program under way, with all that it starts."""

    status: int | None
    """As waitpid gives it, once it has ended; None if that is not known."""
    took_ms: float
    lost: bool
    """Our side lost sight of it: how it ended is not the agent's doing."""
    out_of_memory: str
    """How much it had, in words to stand after `it`, if the system ended it for using more; else empty."""

    @property
    def ended(self) -> bool: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of how it ended."""
        ...

    async def within(self, limit_s: float) -> bool:
        """Whether it has ended by then."""
        ...

    async def end(self, grace_s: float | None = None) -> None:
        """SIGTERM, a grace, SIGKILL. Nothing of it is left afterwards."""
        ...


class Ran(Struct, frozen=True, omit_defaults=True):
    """A command that was run to its end."""

    exit_code: int | None
    """None if it was ended: at its timeout, or by a signal."""
    stdout: bytes = b""
    stderr: bytes = b""
    """The last of both, up to the limit asked for."""
    timed_out: bool = False
    signal: int = 0
    duration_ms: float = 0.0


class FileChange(Struct, frozen=True):
    """How one path of the workspace differs from the snapshot."""

    path: str
    op: Literal["created", "modified", "deleted"]
    bytes: int = 0


class Command(Struct, frozen=True):
    """A command that starts inside a sandbox."""

    argv: tuple[str, ...]
    cwd: str
    ts: float
    """Seconds since 1970."""


class CommandEnd(Struct, frozen=True):
    """How a command ended; one that executed another in its place ends with that."""

    exit_code: int | None
    """None if a signal ended it, ours too."""
    duration_ms: float | None
    """None if it never ran: there is such a file, but the kernel would not execute it."""


class SandboxSpec(Struct, frozen=True):
    """What one sandbox is opened with."""

    name: str
    """Of the trial; unique."""
    layers: tuple[Path, ...] = ()
    """Folders that the workspace is made of, lowest first; never written to."""
    listen: tuple[tuple[str, int], ...] = ()
    """Loopback addresses inside that we want to listen on."""
    hosts: Mapping[str, str] = {}
    """Host name to loopback address, for the sandbox's own name look-up."""
    home: Path | None = None
    """What the agent's home is filled with; never written to."""
    visible: Mapping[str, Path] = {}
    """Further paths inside, read-only, and what is seen there."""
    links: Mapping[str, str] = {}
    """Links to what is visible, by path, where nothing else is."""
    nested: bool = False
    """Programs may have user namespaces, and so sandboxes, of their own."""
    resources: Resources = Resources()
    limits: bool = False
    """Memory and processor time may be limited while it is open, so they are counted from the start."""
    watched: tuple[Disturbed, ...] = ()
    """What faults of files it will have: their calls are told from the start, which slows them."""
    commands: Callable[[Command], Callable[[CommandEnd], None]] | None = None
    """Told of every command that starts inside, if the backend can. What it gives back is told of the end, at the
    latest by the freeze."""


THROWAWAY = "throwaway checks"
"""The promise that nothing is left of what a throwaway command writes."""


class Sandbox(Protocol):
    """One trial's place: its workspace, its network, its processes. Everything raises HarnessError if it breaks."""

    workspace: str
    """The workspace, as programs inside see it."""
    home: str
    """A writable folder outside of it for what programs keep for themselves, as they see it."""

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What is enforced here and what is not."""
        ...

    def listener(self, host: str, port: int) -> socket:
        """The listening socket at an address that the SandboxSpec asked for."""
        ...

    def address(self, host: str, port: int) -> tuple[str, int]:
        """Where programs inside reach it: the same address, or another where there is no network of its own."""
        ...

    def inside(self, path: str) -> str:
        """Where programs find what was made visible at a path: there, or elsewhere if it cannot be there."""
        ...

    async def connect(self, port: int) -> socket:
        """A connection to a program that listens on loopback inside; ConnectionRefusedError while none does."""
        ...

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, *, cwd: str = "") -> Started:
        """Starts a program in the workspace with just this environment; OSError if it cannot be executed."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 120.0,
        keep: int = 8_000,
        throwaway: bool = False,
    ) -> Ran:
        """Runs a command to its end; what a throwaway one writes is gone afterwards."""
        ...

    async def snapshot(self) -> None:
        """What is in the workspace now is where changes count from."""
        ...

    async def freeze(self) -> None:
        """Ends every process of the agent's; from now on the workspace stays as it is."""
        ...

    def changes(self) -> Iterable[FileChange]:
        """How the workspace differs from the snapshot, sorted by path."""
        ...

    def find(self, path: str) -> Path | None:
        """The file or folder at a workspace path, for us to read; None if there is none.

        Raises OutsideError for a path or a link that leaves the workspace; never follows one.
        """
        ...

    def view(self) -> Path:
        """The whole workspace as a folder that may be read, never written to: for scripts on the host."""
        ...

    def home_view(self) -> Path:
        """The home as a folder that may be read."""
        ...

    async def close(self) -> None:
        """Nothing is left: no process, mount, socket or folder."""
        ...


class SandboxBackend(Protocol):
    """Opens sandboxes. One per site; a plug-in of the family `sandboxes` is its class."""

    name: str
    traits: ClassVar[SandboxTraits]

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None) -> SandboxBackend:
        """The backend, tried on this machine; UserError, with what to do, where it cannot work."""
        ...

    @property
    def isolation(self) -> tuple[Isolation, ...]: ...

    async def open(self, sandbox_spec: SandboxSpec) -> Sandbox: ...

    async def close(self) -> None: ...


class Rows(Struct, frozen=True):
    """What a query gave: values as JSON can hold them, dates as ISO text, decimals as numbers where exact."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    """Of all rows, also of those that are not kept."""


class Service(Protocol):
    """A service of one trial, alive."""

    spec: ServiceSpec
    upstream: tuple[str, int] | str
    """Where it really listens: host and port, or the path of a Unix socket."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What an agent that reaches it at `{host}:{port}` is told: patterns, filled in by the world."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know: the version that stands in for an image, for example."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ManyPorts(Service, Protocol):
    """A service that listens on several ports; `upstream` is the first."""

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        """Where one of its ports really is."""
        ...


@runtime_checkable
class Lasting(Service, Protocol):
    """A service whose content can be written to a file, and put into another of its kind."""

    async def dump(self, path: Path) -> str:
        """Writes all that it holds, as the last thing that is asked of it; what had to be left out, in a line.

        HarnessError if it cannot.
        """
        ...

    async def restore(self, path: Path) -> None:
        """Puts what `dump` wrote into a service that nobody has used; HarnessError if it cannot."""
        ...


@runtime_checkable
class Database(Service, Protocol):
    """A service that speaks SQL."""

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        """One statement in a read-only transaction; QueryFailed if the database refuses it, TimeoutError if late."""
        ...

    async def execute(self, sql: str) -> None:
        """Statements of a fixture; QueryFailed names the one that failed."""
        ...

    async def prepare(self, sql: str) -> None:
        """Whether the statement could run; QueryFailed if not."""
        ...

    async def writes(self) -> Iterable[AuditEvent]:
        """The writes of the agent since the snapshot, as the statement log and the row counters have them.

        The agent has ended: sessions that it left open are ended here.
        """
        ...

    async def mark(self) -> None:
        """The snapshot: writes count from here."""
        ...


class Recorded(Struct, frozen=True, omit_defaults=True):
    """One request that reached a mock."""

    method: str
    path: str
    """Without the query."""
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int
    response: str
    ts: float
    cut: bool = False
    """The body was longer: only its beginning is kept."""
    unread: str = ""
    """Why the body cannot be understood: its content encoding, for example, is not known. Then it is as it came."""


@runtime_checkable
class Mock(Service, Protocol):
    """A service that answers by its routes and records what it was asked."""

    @property
    def requests(self) -> Sequence[Recorded]:
        """In the order in which they came; the first ones, if there were too many."""
        ...

    @property
    def dropped(self) -> int:
        """Requests that came after those that are kept."""
        ...


class ServiceKeeper(Protocol):
    """What a site keeps warm of one service: templates, a warm server. Gives every trial a service of its own."""

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        """A fresh service; `alone`: faults will hit the server itself, so no other trial may share it."""
        ...

    async def close(self) -> None: ...


class ServicePlace(Struct, frozen=True):
    """Where a keeper may work."""

    folder: Path
    """Its own, on this machine; gone when the site is closed."""
    docker: bool = False
    """Whether it may start containers."""


class ServiceKind(Protocol):
    """A kind of service: a frozen dataclass whose fields are the keys that only its entries in `services` have.

    One plug-in of the family `services`; `traits` are a class variable.
    """

    traits: ClassVar[ServiceTraits]

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        """What a site keeps warm of one service; references in the spec are replaced by values.

        UserError says what is missing and how to get it; NoServer where a container of its image could be it instead.
        """
        ...


class ServiceContainer(Protocol):
    """A container of an image, ready, of which a kind makes its service."""

    spec: ServiceSpec
    socket_folder: Path
    """A folder that the sockets of its ports are in."""

    @property
    def alive(self) -> bool: ...

    def path(self, port: int) -> str:
        """The Unix socket that leads to one of its ports."""
        ...

    async def close(self) -> None: ...


class WarmService(Service, Protocol):
    """A service that may have waited for its trial."""

    @property
    def alive(self) -> bool:
        """Whether its server still runs."""
        ...


@runtime_checkable
class ContainedKind(ServiceKind, Protocol):
    """A kind that knows more of a container of its image than its ports."""

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService: ...


@runtime_checkable
class ReachableKind(ServiceKind, Protocol):
    """A kind that knows more of one that runs elsewhere than its address; `type: external` with one of its schemes."""

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service: ...


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


class WorldFindings(Struct, frozen=True):
    """What a world shows when its agent has ended."""

    evidence: dict[str, Evidence]
    audit: tuple[AuditEvent, ...]
    isolation: tuple[Isolation, ...]
    forbidden: tuple[ForbiddenResult, ...]
    missing_programs: tuple[str, ...] = ()
    """As the observation has them."""


@runtime_checkable
class GatheringCheck(Protocol):
    """A check of the state an agent left: records its inputs while the world is alive."""

    async def gather(self, world: World, seen: Observation) -> Evidence: ...


@runtime_checkable
class ForeseeingCheck(Protocol):
    """A check that can tell before the agent starts that it could never be gathered."""

    async def foresee(self, world: World) -> None:
        """Raises HarnessError: an error of the trial, never the agent's."""
        ...


class Advice(Struct, frozen=True, omit_defaults=True):
    """What a model said when it was asked."""

    text: str
    model: str = ""
    """Who said it: `provider/name`, or a script."""
    notes: tuple[str, ...] = ()
    """What the reader should know: a temperature that the model refused, for example."""


class Ask(Protocol):
    """Asks a model, cached by content; raises HarnessError if it cannot."""

    async def __call__(
        self,
        model: str,
        system: str,
        prompt: str,
        *,
        temperature: float | None,
        vote: int,
        fits: Callable[[str], bool],
    ) -> Advice:
        """A temperature of None is the model's own. Only a reply that fits is kept: any other is asked for anew."""
        ...


@runtime_checkable
class ConsultingCheck(Protocol):
    """A check that may ask a model once the world is gone, if its traits say so; what it says becomes evidence."""

    async def consult(self, seen: Observation, control: Observation | None, evidence: Evidence, ask: Ask) -> Evidence:
        """`control` is the calm run of a check that needs one."""
        ...


RAN = "ran"
"""In the memory of a WorldFault: a list of the commands, as tuples of words, that it ran beside the agent's."""
TOUCHED = "touched"
"""In the memory of a WorldFault: what it changed of the workspace, a Touched by its path."""
FELT = "felt"
"""In the memory of a WorldFault: tells whether a call of the agent failed for it, from before it was done."""
RESTART = "restart"
"""In the memory of a WorldFault: true if the agent was killed and is to be started again."""


class Touched(Struct, frozen=True):
    """A path of the workspace that a fault changed."""

    before: FileChange | None
    """What the agent had done there by then."""
    stands: Callable[[FileChange], bool]
    """Whether a change is what the fault left there, and nothing that the agent did since."""


class WorldFault(Protocol):
    """Disturbs the place of one trial while it is alive. What it does is no doing of the agent's, so it notes it."""

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        """What was done, for the ledger; empty if nothing was there to disturb. HarnessError where the world cannot."""
        ...


@runtime_checkable
class HealingFault(WorldFault, Protocol):
    """A WorldFault that is undone when the agent has ended, so that evidence can be gathered."""

    async def heal(self, world: World, ctx: FaultContext) -> None: ...


@runtime_checkable
class ProvableFault(WorldFault, Protocol):
    """A WorldFault that is met only if the agent ran into it. Without this power, one that was done is met."""

    def unmet(self, world: World, ctx: FaultContext) -> str:
        """Asked when the agent has ended: why it was not met, or why that cannot be seen; empty if it was."""
        ...


@runtime_checkable
class Disturbable(Protocol):
    """A sandbox whose processes can be disturbed; raises HarnessError where this machine cannot."""

    async def kill(self) -> int:
        """SIGKILL to every process of the agent's; how many of its programs ran. New ones can be started."""
        ...

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        """From now on the agent's processes have so many bytes of memory, so many cores."""
        ...

    def strained(self, what: Literal["memory", "cpu"]) -> int | None:
        """How often the limit held the agent's processes back so far; None where this machine does not count that."""
        ...


class FileHazard(Struct, frozen=True):
    """What an agent may run into: files that are gone, may not be used or not be written to, or a full disk."""

    kind: Literal["gone", "denied", "read_only", "full"]
    path: str = "."
    """In the workspace, no link."""
    spared: tuple[str, ...] = ()
    """Paths that were that way before the fault."""


@runtime_checkable
class WatchingSandbox(Protocol):
    """A sandbox that sees which system calls of the agent fail for a fault of its files."""

    async def watch(self, hazard: FileHazard) -> Callable[[], bool] | None:
        """Whether the agent has run into it since, each time that is asked; None where that cannot be seen."""
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


# -- agents -------------------------------------------------------------------------------------
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


class TalkingUser(Protocol):
    """A simulated user in one conversation."""

    async def reply(self, task: Task, turns: Sequence[Turn]) -> str | None:
        """What it says to the last of these turns; None: it has no more to say. HarnessError if it cannot be asked."""
        ...


class Agent(Protocol):
    """The thing under test, behind one method. May raise: that is a result."""

    async def run(self, task: Task, world: World) -> Answer:
        """Resets the agent first, if the spec names a reset; HarnessError if that fails."""
        ...

    async def close(self) -> None: ...


# -- stages -------------------------------------------------------------------------------------
class Executor(Protocol):
    """Runs trials, in this process or on other machines. Whatever it is, the same trials give the same verdicts."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report should say of where they ran."""
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


class Planner(Protocol):
    """Pure: what to run next, given what has been judged; `[]` ends the run."""

    def next(self, judged: Judged) -> Sequence[Trial]: ...


class Reporter(Protocol):
    """A rendering of a run. Pure, so that a golden test is one comparison; in pieces, so that a run may be large."""

    suffix: ClassVar[str]
    """The end of its files' names, with the dot: what `-o FILE` is recognised by."""

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        """The content of every file by its name, made while it is written. The first is the report itself."""
        ...
