"""A sandbox backend: where programs of one trial run, apart from all else. For example:

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
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.traits import Disturbed
from holdfast.model.world import Isolation, Resources
from holdfast.model.world import SandboxTraits as SandboxTraits

if TYPE_CHECKING:
    from pathlib import Path
    from socket import socket


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
