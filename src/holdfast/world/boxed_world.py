"""A BoxedWorld: the sandbox and services of one trial, from before the agent starts until its evidence is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import AgentUnavailable, HoldfastError, OutsideError
from holdfast.model.capabilities import COMMANDS, FILES, HTTP
from holdfast.model.codec import encode
from holdfast.model.spec import AgentSpec
from holdfast.model.world import AuditEvent, Isolation, WorldSpec
from holdfast.processes.startable import SHELL
from holdfast.protocols.sandbox import Command, CommandEnd, FileChange, Sandbox, Started, Stdio
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import AnswerContent
from holdfast.world.agent_mounts import Mounts
from holdfast.world.audit import AuditLog, SecretSearch
from holdfast.world.bare_world import read_left
from holdfast.world.disturbances import Disturbances
from holdfast.world.ingress import IngressPorts, PortForward
from holdfast.world.kept_world import KeptWorld, WorldKeeper, remove_secrets
from holdfast.world.service_planes import ServicePlanes, TrialServices
from holdfast.world.site_worlds import SiteWorlds, find_disturbed
from holdfast.world.supervisors.messages import WORKSPACE
from holdfast.world.workspace import ChangedTexts, find_in_database, find_in_file
from holdfast.world.world_clock import WorldClock

if TYPE_CHECKING:
    from holdfast.planes.trial_address import TrialAddress

SYSTEM = ("/usr", "/opt", "/nix")
"""Programs of this machine that every sandbox has."""


class BoxedPlace:
    """The workspace of one trial's sandbox. The world closes it."""

    def __init__(self, sandbox: Sandbox, mounts: Mounts, environ: Mapping[str, str], visible: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._mounts = mounts
        self.folder = mounts.find_module_folder(sandbox)
        self.boxed = sandbox.workspace == WORKSPACE
        self.own_files = _describe_own_files(mounts, sandbox)
        self.environ = environ
        if mounts.agent_dir:  # `uvicorn app:app` imports from the agent's own folder
            folders = (environ.get("PYTHONPATH"), self.folder)
            self.environ = {**environ, "PYTHONPATH": ":".join(filter(None, folders))}
        self.sees = describe_search(environ.get("PATH", ""), (*SYSTEM, *visible, sandbox.workspace))

    def map_agent_paths(self, agent: AgentSpec) -> AgentSpec:
        return self._mounts.map_section(agent, self._sandbox)

    def build_argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        """Return the command as written: only the sandbox can tell whether its program exists."""
        return [SHELL, "-c", agent.command] if agent.command is not None else [agent.binary or "", *agent.args]

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Started:
        try:
            return await self._sandbox.start(argv, env, stdio)
        except OSError as refused:
            why = f"cannot start {argv[0]}: {refused.strerror}"
            raise AgentUnavailable(why, code="agent-not-started", hint=self.sees, config=True) from refused

    async def forward(self, port: int) -> PortForward:
        return await PortForward(self._sandbox, port).listen()

    def serve_trial(self, context: TrialContext) -> AbstractContextManager[None]:
        """Do nothing: the world serves the trial from the start."""
        return nullcontext()

    async def close(self) -> None:
        """Do nothing: the world closes what was started in it."""


def _describe_own_files(mounts: Mounts, sandbox: Sandbox) -> str:
    """Return a hint for a program that misses its files: which of the agent's own files are mounted."""
    start = f"it starts in {sandbox.workspace}, in a sandbox"
    if mounts.agent_dir:
        return (
            f"{start}, and finds agent.dir in {sandbox.inside(mounts.agent_dir)}, which is also on Python's module path"
        )
    paths = ", ".join(map(sandbox.inside, mounts.visible)) or "nothing"
    return f"{start}, and sees {paths} of the spec's folder; agent.dir: ./folder shows it a folder and its modules"


def describe_search(path: str, folders: Sequence[str]) -> str:
    """Return a hint for a program that is missing in a sandbox: which folders were searched, and what to do."""
    searched = f"inside, PATH is {path}, and the sandbox shows only {', '.join(folders)}"
    return f"{searched}; write the program's full path, or make its folder visible: agent.dir: /that/folder"


class WorkspaceAnswerFile:
    """The answer file of an agent that keeps its files: a file that did not change during the turn is not an answer."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.name = name
        self._sandbox = sandbox
        self._before: tuple[int, int, int] | None = None

    def clear(self) -> None:
        self._before = self._read_state()

    def read(self, limit: int) -> AnswerContent:
        if self._before is not None and self._read_state() == self._before:
            return AnswerContent(absent=True)
        try:
            path = self._sandbox.find(self.name)
        except OutsideError as refused:
            return AnswerContent(refused=str(refused))
        return AnswerContent(absent=True) if path is None else read_left(path, self.name, limit)

    def _read_state(self) -> tuple[int, int, int] | None:
        """Return the inode, time and size of the file; None if it does not exist."""
        try:
            path = self._sandbox.find(self.name)
            status = None if path is None else path.lstat()
        except (OutsideError, OSError):
            return None
        return None if status is None else (status.st_ino, status.st_mtime_ns, status.st_size)


LENT_FOLDER = "/run/holdfast"
"""The folder inside with the files that Holdfast lends the agent: its prompt, configuration and certificates."""
_AUDITS = {COMMANDS: "commands", HTTP: "http_calls", FILES: "writes_outside"}


class BoxedWorld:
    """The sandbox and services of one trial. `open_world` builds it."""

    def __init__(self, site: SiteWorlds, spec: WorldSpec, folder: Path, context: TrialContext) -> None:
        self.spec = spec
        self.context = context
        self.trial = context.trial
        self.root = site.settings.root
        self.folder = folder
        self.lent = folder / "lent"
        self.sandbox: Sandbox
        self.planes: TrialAddress
        self.service_planes: ServicePlanes
        self.services = TrialServices(spec.network)
        self.environ: Mapping[str, str] = {}
        self.plane_variables: frozenset[str] = frozenset()
        """Variables that route the agent to Holdfast's planes."""
        self.links: Mapping[str, str] = {}
        self.audit_log = folder / "audit.jsonl"
        self.trace_log = folder / "trace.jsonl"
        self.log = AuditLog(self.audit_log, spec.audit)
        self.leaks = SecretSearch(site.settings.secrets)
        self.foreseen: dict[tuple[str, ...], object] = {}
        self.remembered = site.remembered
        self.worth_keeping = True
        """Whether the world of this trial is worth keeping; a world that failed always is."""
        self.begun: list[str] = []
        """Sections of the spec that were set up so far; the last one may be unfinished."""
        self.disturbances = Disturbances(context)
        self.disturbed = find_disturbed(context.trial.scenario)
        self.wants_clock = spec.determinism.clock is not None or "clock" in self.disturbed
        self.clock = WorldClock(self.lent, site.clock)
        self.ingress = IngressPorts(spec.network, shared=not site.backend.traits.isolates)
        self.parts = AsyncExitStack()
        """Closes everything that was opened for this world."""
        self._site = site
        self._events: tuple[AuditEvent, ...] = ()
        self._watched = False
        """Set once the agent's programs have their place: from then on, what happens inside is the agent's doing."""

    async def place(self) -> BoxedPlace:
        settings = self._site.settings
        self._watched = True
        return BoxedPlace(self.sandbox, settings.mounts, self.environ, sorted(settings.visible))

    def answer_file(self, name: str) -> WorkspaceAnswerFile:
        return WorkspaceAnswerFile(self.sandbox, name)

    def time_left_s(self) -> float:
        limit_ms = self.spec.resources.timeout_ms
        return inf if limit_ms is None else limit_ms / 1000 + self.context.turns.user_s - self.context.sink.now()

    def on_output(self, data: bytes) -> None:
        self.leaks.add(data)

    def lend(self, name: str, content: bytes) -> str:
        (self.lent / name).write_bytes(content)
        (self.lent / name).chmod(0o644)
        return f"{self.sandbox.inside(LENT_FOLDER)}/{name}"

    def view(self) -> Path:
        return self.sandbox.view()

    def changes(self) -> Iterator[FileChange]:
        return self.disturbances.list_agent_changes(self.sandbox.changes())

    def audit(self) -> Iterator[AuditEvent]:
        return iter(self._events)

    def record_command(self, command: Command) -> Callable[[CommandEnd], None]:
        """Record a command that started inside, unless a fault started it."""
        if not self._watched or self.disturbances.is_own_command(command.argv):
            return lambda end: None
        self.disturbances.handle_event("command")
        return self.log.record_command(command.argv, command.cwd, command.ts)

    def time(self) -> float:
        return self.clock.read_time()

    async def set_clock(self, now: float, *, frozen: bool = False) -> None:
        self.clock.set(now, frozen=frozen)

    @property
    def clock_changes(self) -> int:
        return self.clock.changes

    def read_clock_changes(self) -> frozenset[int] | None:
        return self.clock.read_changes()

    async def settle(self, began: float) -> None:
        """Stop the agent's processes, close the audit and freeze the workspace."""
        # The order matters. First nobody can reach the agent any more, then all its processes end, and only then do the
        # faults on services stop: none of its late calls may pass unharmed. The log is closed last, with everything in
        # it.
        await self.ingress.close()
        await self.sandbox.freeze()
        self.service_planes.stop_faults()
        trace = self.context.sink.events()
        self.trace_log.write_bytes(b"".join(encode(event) + b"\n" for event in trace))
        untouched = None if self.spec.setup.commands else self.folder / "layer"
        attack = self.trial.task.attack
        in_files = partial(find_in_file, self.sandbox) if attack else None
        self.log.record_files(self.changes(), ChangedTexts(self.sandbox, untouched).read_texts, in_files)
        for database in self.services.databases.values():
            await self.log.record_database(database, find_in_database if attack else None)
        self.log.record_calls(trace, began, self.services.mocks)
        self._events = self.log.close()
        # Includes findings about services that are only available now.
        for note in (*self.services.notes, *self._list_blind_spots()):
            self.context.sink.note(note)

    def _list_blind_spots(self) -> Iterator[str]:
        if self.spec.forbidden.file_writes_outside is not None:
            yield "file writes are taken from the files that remain: a file that was created and removed is not seen"
        if self.spec.forbidden.db_writes_outside is not None and self.services.without_tables:
            yield f"db_writes_outside checks only SQL tables: it ignores {', '.join(self.services.without_tables)}"
        if self.log.cut:
            yield "the audit log is full: later events are missing from it"

    async def keep(self, keeping: WorldKeeper, *, opened: bool) -> None:
        """Copy everything available to a kept world; add a note to the trial if something could not be copied."""
        secrets = self._site.settings.secrets
        # These variables refer to parts of this world that are about to close.
        passing = self.plane_variables | self.clock.environ.keys()
        lasting = {name: value for name, value in self.environ.items() if name not in passing}
        visible = {inside: str(path) for inside, path in self._site.settings.visible.items()}
        description = KeptWorld(
            self.trial.id, str(self.root), remove_secrets(lasting, secrets), visible, links=dict(self.links)
        )
        sandbox = self.sandbox if opened else None
        try:
            await keeping.keep(description, sandbox, self.services, [self.audit_log, self.trace_log], secrets.values())
        except (OSError, HoldfastError) as refused:
            self.context.sink.note(f"its sandbox could not be kept: {refused}")

    @property
    def audit_gaps(self) -> dict[str, str]:
        lacking = {
            _AUDITS[entry.feature]: entry.why
            for entry in self.isolation
            if not entry.enforced and entry.feature in _AUDITS
        }
        cut = {f"{type}s": "the audit log was cut" for type in self.log.cut}
        return lacking | self.services.unaudited | cut

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What the sandbox enforces, and what this world could not provide of the spec."""
        own = (*(self.clock.isolation if self.wants_clock else ()), *self.ingress.isolation)
        unsupported = [
            entry for entry in self._site.unsupported if entry.feature not in {isolation.feature for isolation in own}
        ]
        return (*self.sandbox.isolation, *unsupported, *own)

    async def close(self) -> None:
        """Close everything, even after an earlier failure."""
        try:
            self.clock.close()
        finally:
            try:
                await self.parts.aclose()
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)
