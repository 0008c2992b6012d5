"""A sandbox backend isolates the programs of one trial. For example:

    class Jail:
        "Opens jails."

        name = "jail"
        traits: ClassVar[SandboxTraits] = SandboxTraits()
        isolation = ()

        @classmethod
        async def open_backend(cls, folder: Path, image: str | None) -> SandboxBackend:
            return cls()

        async def open(self, sandbox_spec: SandboxSpec) -> Sandbox:
            return JailSandbox(sandbox_spec)

        async def close(self) -> None: ...

`holdfast.testing.sandboxes` is its conformance kit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.traits import Disturbed
from holdfast.model.world import Isolation, Resources
from holdfast.model.world import SandboxTraits as SandboxTraits

if TYPE_CHECKING:
    from socket import socket


class Stdio(NamedTuple):
    """Descriptors for a program's stdin, stdout and stderr; the caller closes its own copies."""

    stdin: int
    stdout: int
    stderr: int


class Started(Protocol):
    """A running program with everything that it starts."""

    status: int | None
    """Its waitpid status, once it has ended; None if unknown."""
    took_ms: float
    lost: bool
    """Whether Holdfast lost track of it: its end is then not the agent's doing."""
    out_of_memory: str
    """How much memory it used, as words after `it`, if the system killed it for using too much; else empty."""

    @property
    def ended(self) -> bool: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader about how it ended."""

    async def wait_for_end(self, limit_s: float) -> bool:
        """Return whether it ends within the limit."""

    async def end(self, grace_s: float | None = None) -> None:
        """Send SIGTERM, wait for a grace period, send SIGKILL. Nothing of it is left afterwards."""


class CommandResult(Struct, frozen=True, omit_defaults=True):
    """A command that has ended."""

    exit_code: int | None
    """The exit code; None if it was killed: at its timeout, or by a signal."""
    stdout: bytes = b""
    stderr: bytes = b""
    """The end of both outputs, up to the limit."""
    timed_out: bool = False
    signal: int = 0
    duration_ms: float = 0.0


class FileChange(Struct, frozen=True):
    """A difference of one path between the workspace and the snapshot."""

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
    """The end of a command; a command that executes another in its place ends with that one."""

    exit_code: int | None
    """The exit code; None if a signal killed it, also one from Holdfast."""
    duration_ms: float | None
    """The run time; None if it never ran: the file exists, but the kernel refused to execute it."""


class SandboxSpec(Struct, frozen=True):
    """The settings of one sandbox."""

    name: str
    """The trial's name; unique."""
    layers: tuple[Path, ...] = ()
    """Folders that form the workspace, lowest first; never written to."""
    listen: tuple[tuple[str, int], ...] = ()
    """Loopback addresses inside on which Holdfast listens."""
    hosts: Mapping[str, str] = {}
    """Host names and their loopback addresses, for name resolution in the sandbox."""
    home: Path | None = None
    """The folder that fills the agent's home; never written to."""
    visible: Mapping[str, Path] = {}
    """Additional read-only paths inside, and their sources."""
    links: Mapping[str, str] = {}
    """Links to visible paths, by path, where nothing else is."""
    nested: bool = False
    """Whether programs may create user namespaces, and so their own sandboxes."""
    resources: Resources = Resources()
    limits: bool = False
    """Whether memory and CPU may be limited while it is open; then they are counted from the start."""
    watched: tuple[Disturbed, ...] = ()
    """The kinds of file faults it will have: their system calls are reported from the start, which slows them down."""
    commands: Callable[[Command], Callable[[CommandEnd], None]] | None = None
    """Called for every command that starts inside, if the backend can report it.

    The returned function is called at the command's end, at the latest when the sandbox is frozen.
    """


class Sandbox(Protocol):
    """One trial's workspace, network and processes. Every method raises HarnessError if it fails."""

    workspace: str
    """The path of the workspace inside."""
    home: str
    """The path inside of a writable folder outside the workspace, for programs' own files."""

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """The kinds of isolation, and whether each is enforced here."""

    def listener(self, host: str, port: int) -> socket:
        """Return the listening socket at an address that the SandboxSpec asked for."""

    def address(self, host: str, port: int) -> tuple[str, int]:
        """Return the address at which programs inside reach it: another one if there is no separate network."""

    def inside(self, path: str) -> str:
        """Return the path inside the sandbox of a file made visible: the same path, or another if that is
        impossible.
        """

    async def connect(self, port: int) -> socket:
        """Connect to a program that listens on loopback inside; raises ConnectionRefusedError while none does."""

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Started:
        """Start a program in the workspace with exactly this environment; raises OSError if it cannot be executed."""

    async def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 120.0,
        keep: int = 8_000,
        throwaway: bool = False,
    ) -> CommandResult:
        """Run a command to its end; the changes of a throwaway command are discarded."""

    async def snapshot(self) -> None:
        """Count changes from the current state of the workspace on."""

    async def freeze(self) -> None:
        """Kill every process of the agent; from now on the workspace does not change."""

    def changes(self) -> Iterable[FileChange]:
        """Return how the workspace differs from the snapshot, sorted by path."""

    def find(self, path: str) -> Path | None:
        """Return a readable path to the file or folder at a workspace path; None if there is none.

        Raises OutsideError for a path or a link that leaves the workspace; never follows one.
        """

    def view(self) -> Path:
        """Return the complete workspace as a folder that may be read but not written, for scripts on the host."""

    def home_view(self) -> Path:
        """Return the home as a folder that may be read."""

    async def close(self) -> None:
        """Remove all processes, mounts, sockets and folders."""


class SandboxBackend(Protocol):
    """Opens sandboxes. One per site; a plug-in of the family `sandboxes` is its class."""

    name: str
    traits: ClassVar[SandboxTraits]

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None) -> SandboxBackend:
        """Open the backend and test it on this machine; raises UserError, with what to do, if it cannot work."""

    @property
    def isolation(self) -> tuple[Isolation, ...]: ...

    async def open(self, sandbox_spec: SandboxSpec) -> Sandbox: ...

    async def close(self) -> None: ...


@runtime_checkable
class Disturbable(Protocol):
    """A sandbox whose processes can be disturbed; raises HarnessError if this machine cannot."""

    async def kill(self) -> int:
        """Send SIGKILL to every process of the agent; returns how many programs ran. New ones can be started."""

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        """Limit the agent's processes to this many bytes of memory and this many cores."""

    def count_limit_hits(self, what: Literal["memory", "cpu"]) -> int | None:
        """Return how often the limit held the agent's processes back so far.

        None if this machine does not count that.
        """


class FileHazard(Struct, frozen=True):
    """An obstacle for the agent: missing files, files without permission, read-only files, or a full disk."""

    kind: Literal["gone", "denied", "read_only", "full"]
    path: str = "."
    """A path in the workspace that is not a link."""
    spared: tuple[str, ...] = ()
    """Paths that were in that state before the fault."""


@runtime_checkable
class WatchingSandbox(Protocol):
    """A sandbox that sees which system calls of the agent fail because of a file fault."""

    async def watch(self, hazard: FileHazard) -> Callable[[], bool] | None:
        """Return a function that tells whether the agent has hit it since; None if that cannot be observed."""
