"""A BareWorld runs one trial on this machine as it is.

Opening it does nothing. Its programs run in the spec's folder, with the user's environment, through one launch host.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from holdfast.errors import AgentMisconfigured, HarnessError
from holdfast.model.codec import encode
from holdfast.model.spec import AgentSpec
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent
from holdfast.processes import scratch
from holdfast.processes.launcher import Launcher
from holdfast.processes.startable import build_argv, start
from holdfast.protocols.world import AnswerContent

if TYPE_CHECKING:
    from holdfast.planes.site_planes import SitePlanes
    from holdfast.planes.trial_address import TrialAddress
    from holdfast.processes.program import Program
    from holdfast.protocols.sandbox import FileChange, Sandbox, Stdio
    from holdfast.protocols.service import Service
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import Planes


class Machine:
    """The state that all bare worlds of a site share. Opens a place for each process tree."""

    def __init__(self, root: Path, environ: Mapping[str, str], site_planes: SitePlanes | None = None) -> None:
        self.root = root
        self.environ = environ
        self.site_planes = site_planes
        self.planes: TrialAddress | None = None
        """The gateway's address, for an agent that is already running and was started with it."""
        self._launcher: Launcher | None = None

    @property
    def launcher(self) -> Launcher:
        """The launch host, started with the first program: most sites of a fast agent never need one."""
        if self._launcher is None:
            self._launcher = Launcher()
        return self._launcher

    async def place(self) -> MachinePlace:
        """Open a place whose programs have their own address, if this site has planes. Close it after use."""
        return MachinePlace(self, None if self.site_planes is None else await self.site_planes.open_address())

    async def close(self) -> None:
        if self._launcher is not None:
            await self._launcher.close()


class MachinePlace:
    """The place on this machine where one program and its children run."""

    def __init__(self, machine: Machine, address: TrialAddress | None) -> None:
        self._machine = machine
        self._address = address
        self.folder = str(machine.root)
        self.boxed = False
        self.sees = "it is run by sh -c in the spec's folder: check its name, its path and that it is executable"
        self.own_files = "run its command in the spec's folder to see why"
        self.environ: Mapping[str, str] = machine.environ if address is None else {**machine.environ, **address.environ}

    def map_agent_paths(self, agent: AgentSpec) -> AgentSpec:
        return agent

    def build_argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        return build_argv(agent, self._machine.root, env)

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Program:
        program = await start(self._machine.launcher, list(argv), env, self._machine.root, stdio)
        if self._address is not None:
            self._address.process_tree.first = program.keeper
        return program

    async def forward(self, port: int) -> None:
        """Do nothing: the program shares this machine's ports."""

    @contextmanager
    def serve_trial(self, context: TrialContext) -> Iterator[None]:
        if self._address is None:
            yield
        else:
            with self._address.serve_trial(context):
                yield

    async def close(self) -> None:
        if self._address is not None:
            await self._address.close()


class FolderAnswerFile:
    """`agent.answer_file`, checked against the folder that must contain it."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = os.path.realpath(root)
        self._path = os.path.normpath(os.path.join(self._root, name))
        if not self._is_inside(self._path) or self._path == self._root:
            raise AgentMisconfigured(
                f"agent.answer_file is outside the spec's folder: {name!r}",
                hint="name a file in that folder, such as answer.txt",
            )
        self.name = name

    def clear(self) -> None:
        """Remove the file of an earlier run. If it is a link, remove the link and not its target."""
        if not self._is_inside(os.path.realpath(os.path.dirname(self._path))):
            return  # the agent replaced its folder by a link to another place: read() reports it
        try:
            os.unlink(self._path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return  # a folder of that name stays: read() reports it
        except OSError as broken:
            why = broken.strerror or str(broken)
            raise AgentMisconfigured(f"agent.answer_file {self.name!r} cannot be replaced: {why}") from broken

    def read(self, limit: int) -> AnswerContent:
        """Read the file. Call it only after every process of the agent has ended."""
        # The agent may have replaced the file or a folder above it by a link to one that only the user can read: its
        # answer would then be that file.
        real = os.path.realpath(self._path)
        if not self._is_inside(real):
            return AnswerContent(refused=f"{self.name} is a link that points outside the folder")
        return read_left(real, self.name, limit)

    def _is_inside(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root.rstrip(os.sep) + os.sep)


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file, without following a link or waiting for a pipe; raise OSError for anything else."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(fd, "rb")


def read_left(path: str | Path, name: str, limit: int) -> AnswerContent:
    """Read a regular file that an agent wrote; links in its path have been followed by now."""
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return AnswerContent(absent=True)
    except OSError as broken:
        return AnswerContent(refused=f"{name} cannot be read: {broken.strerror}")
    return AnswerContent(data[:limit], cut=len(data) > limit)


_NOWHERE = Path("/dev/null")


class BareWorld:
    """The world of an agent that runs without a sandbox. Close it if anything was opened in it."""

    services: Mapping[str, Service] = {}
    audit_gaps: Mapping[str, str] = {}

    def __init__(self, context: TrialContext, machine: Machine) -> None:
        self.context = context
        self.trial: Trial = context.trial
        self.root = machine.root
        self.environ = machine.environ
        self.planes: Planes | None = machine.planes
        self._machine = machine
        self._place: MachinePlace | None = None
        self._lent: Path | None = None
        self.audit_log = self.trace_log = _NOWHERE
        self.foreseen: dict[tuple[str, ...], object] = {}
        self.remembered = self.foreseen
        self.used = False
        """Whether anything has to be closed."""

    @property
    def sandbox(self) -> Sandbox:
        raise HarnessError("there is no sandbox around this agent, so its state cannot be inspected", code="no-sandbox")

    async def place(self) -> MachinePlace:
        self.used = True
        if self._place is None:
            self._place = await self._machine.place()
        return self._place

    def time_left_s(self) -> float:
        return inf

    def on_output(self, data: bytes) -> None:
        """Ignore the data: a bare world does not search it for secrets."""

    def lend(self, name: str, content: bytes) -> str:
        self.used = True
        if self._lent is None:
            self._lent = scratch.make("lent")
        path = self._lent / name
        path.write_bytes(content)
        return str(path)

    def settle(self) -> None:
        """Close the trace of an agent that has ended. Nothing was audited."""
        self.audit_log = Path(self.lend("audit.jsonl", b""))
        trace = b"".join(encode(event) + b"\n" for event in self.context.sink.events())
        self.trace_log = Path(self.lend("trace.jsonl", trace))

    def answer_file(self, name: str) -> FolderAnswerFile:
        return FolderAnswerFile(self.root, name)

    def view(self) -> Path:
        return self.root

    def changes(self) -> Iterator[FileChange]:
        return iter(())

    def audit(self) -> Iterator[AuditEvent]:
        return iter(())

    async def close(self) -> None:
        """Close everything that was opened for the trial."""
        try:
            if self._lent is not None:
                scratch.remove(self._lent)
        finally:
            if self._place is not None:
                await self._place.close()
