"""A BoxedWorld: a sandbox with services around one trial, opened before the agent starts, gone after its evidence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.model.codec import encode
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, Isolation, PlacedFile, WorldSpec
from holdfast.planes.http.trust import NODE_PRELOAD, node_options
from holdfast.planes.site_planes import placeholders
from holdfast.planes.tcp.names import NSSWITCH_CONF, RESOLV_CONF, unresolved
from holdfast.processes.startable import variables as trial_variables
from holdfast.protocols.sandbox import Command, CommandEnd, FileChange, Sandbox, SandboxSpec
from holdfast.protocols.service import Database, Mock, Service
from holdfast.protocols.trial import TrialContext
from holdfast.world.audit import AuditLog
from holdfast.world.boxed_place import BoxedPlace, WorkspaceAnswerFile
from holdfast.world.disturbances import Disturbances
from holdfast.world.file_texts import ChangedTexts, in_database, in_file
from holdfast.world.forbidden import Overheard
from holdfast.world.holders.surroundings import WORKSPACE
from holdfast.world.ingress import IngressPorts
from holdfast.world.kept_world import KeptWorld, WorldKeeper, without
from holdfast.world.sandbox.workspace import copy_tree
from holdfast.world.service_planes import GATEWAY, NAMES, ServicePlanes, hosts, listening, variables
from holdfast.world.shortcomings import WORKDIR, disturbed
from holdfast.world.site_worlds import SiteWorlds
from holdfast.world.workspace import fill, lay_out, place_files, set_up
from holdfast.world.world_clock import WorldClock

if TYPE_CHECKING:
    from holdfast.planes.trial_address import TrialAddress

LENT = "/run/holdfast"
"""Where the agent finds what it is lent: its prompt, its configuration, certificates."""
_AUDITS = {"command audit": "commands", "http audit": "http_calls", "file audit": "writes_outside"}
_SYSTEM = {"LANG": "C.UTF-8", "TERM": "dumb"}


class BoxedWorld:
    """A sandbox with services around one trial. Opened by `WorldFactory.open`."""

    def __init__(self, site: SiteWorlds, spec: WorldSpec, folder: Path, context: TrialContext) -> None:
        self.spec = spec
        self.context = context
        self.root = site.settings.root
        self.sandbox: Sandbox
        self.services: dict[str, Service] = {}
        self.planes: TrialAddress
        self.environ: Mapping[str, str] = {}
        self.audit_log = folder / "audit.jsonl"
        self.trace_log = folder / "trace.jsonl"
        self.log = AuditLog(self.audit_log, spec.audit)
        self.overheard = Overheard(site.settings.secrets)
        self.foreseen: dict[tuple[str, ...], object] = {}
        self.worth_a_look = True
        """Whether it is kept, if worlds are; one that broke always is."""
        self.doing = ""
        """What of the spec is being put in place."""
        self.disturbances = Disturbances(site.scenario(context.trial), context)
        self._events: tuple[AuditEvent, ...] = ()
        self._leads: frozenset[str] = frozenset()
        """Variables that lead to our planes."""
        self._opened = False
        self._watched = False
        """Once the agent's programs have their place, what happens inside is its doing."""
        self._site = site
        self._folder = folder
        self._lent = folder / "lent"
        self._clock = WorldClock(self._lent, site.clock)
        self._ingress = IngressPorts(spec.network, shared=not site.backend.traits.isolates)
        self._service_planes: ServicePlanes
        self._parts = AsyncExitStack()

    async def open(self) -> None:
        """Everything in its order; HarnessError says what could not be had."""
        self._lent.mkdir(parents=True)
        layer, home = self._folder / "layer", self._folder / "home"
        layer.mkdir()
        home.mkdir()
        lay_out(layer, self.root, self.spec.fixtures)
        place_files(layer, self.root, self.spec.setup.files)
        if self._site.settings.home is not None:
            copy_tree(self._site.settings.home, home)
        place_files(home, self.root, self.spec.setup.home_files)
        self._hide_secrets(layer)
        await self._open_services()
        await self._open_sandbox(layer, home)
        await self._connect()
        await fill(self.spec.fixtures, self.databases, self.root, self.trial, self._begin)
        await set_up(self.spec.setup.commands, self.sandbox, self.environ, self._begin)
        if self._wants_clock:
            await self._wind()
        for database in self.databases.values():
            await database.mark()
        await self.sandbox.snapshot()
        self._parts.push_async_callback(self._ingress.close)
        await self._ingress.open(self.sandbox, {self.sandbox.listener(*GATEWAY).getsockname()[1]})
        for note in self._ingress.notes:
            self.context.note(note)
            self._site.settings.told(self.trial, note)

    @property
    def trial(self) -> Trial:
        return self.context.trial

    async def place(self) -> BoxedPlace:
        settings = self._site.settings
        self._watched = True
        return BoxedPlace(self.sandbox, settings.mounts, self.environ, sorted(settings.visible))

    def answer_file(self, name: str) -> WorkspaceAnswerFile:
        return WorkspaceAnswerFile(self.sandbox, name)

    @property
    def databases(self) -> dict[str, Database]:
        return {name: service for name, service in self.services.items() if isinstance(service, Database)}

    @property
    def mocks(self) -> dict[str, Mock]:
        """By every host name that leads to one."""
        found = {name: service for name, service in self.services.items() if isinstance(service, Mock)}
        overridden = self.spec.network.dns_overrides.items()
        return found | {host: found[service] for host, service in overridden if service in found}

    def _begin(self, what: str) -> None:
        self.doing = what

    def time_left_s(self) -> float:
        limit_ms = self.spec.resources.timeout_ms
        return inf if limit_ms is None else limit_ms / 1000 + self.context.user_s - self.context.now()

    def heard(self, data: bytes) -> None:
        self.overheard.add(data)

    def lend(self, name: str, content: bytes) -> str:
        (self._lent / name).write_bytes(content)
        (self._lent / name).chmod(0o644)
        return f"{self.sandbox.inside(LENT)}/{name}"

    def view(self) -> Path:
        return self.sandbox.view()

    def changes(self) -> Iterator[FileChange]:
        return self.disturbances.of_agent(self.sandbox.changes())

    def audit(self) -> Iterator[AuditEvent]:
        return iter(self._events)

    def time(self) -> float:
        return self._clock.time()

    async def set_clock(self, now: float, *, frozen: bool = False) -> None:
        self._clock.set(now, frozen=frozen)

    @property
    def clock_changes(self) -> int:
        return self._clock.changes

    def seen_clock_changes(self) -> frozenset[int] | None:
        return self._clock.seen_changes()

    async def settle(self, began: float) -> None:
        """The agent has ended: its processes are stopped, the audit is closed, the workspace frozen."""
        await self._ingress.close()
        await self.sandbox.freeze()
        self._service_planes.calm()
        trace = self.context.traced()
        self.trace_log.write_bytes(b"".join(encode(event) + b"\n" for event in trace))
        untouched = None if self.spec.setup.commands else self._folder / "layer"
        attack = self.trial.task.attack
        in_files = partial(in_file, self.sandbox) if attack else None
        self.log.files(self.changes(), ChangedTexts(self.sandbox, untouched).of, in_files)
        for database in self.databases.values():
            await self.log.database(database, in_database if attack else None)
        self.log.calls(trace, began, self.mocks)
        self._events = self.log.close()
        for service in self.services.values():
            self._note(service)  # also of what is only known now
        if self.spec.forbidden.file_writes_outside is not None:
            self.context.note(
                "file writes are read from what is left: a file that was made and removed again is not seen"
            )
        blind = [one.spec.name for one in self.services.values() if not isinstance(one, Mock | Database)]
        if self.spec.forbidden.db_writes_outside is not None and blind:
            self.context.note(f"db_writes_outside sees tables of SQL alone, nothing of {', '.join(blind)}")
        if self.log.cut:
            self.context.note("more happened than the audit log keeps; its end is missing")

    async def keep(self, keeping: WorldKeeper) -> None:
        """Leaves all that can be had of it for a look; the trial says so where something cannot."""
        secrets = self._site.settings.secrets
        visible = {inside: str(path) for inside, path in self._site.settings.visible.items()}
        links = self._links()
        about = KeptWorld(self.trial.id, str(self.root), without(self._lasting(), secrets), visible, links=links)
        sandbox = self.sandbox if self._opened else None
        try:
            await keeping.keep(about, sandbox, self.services, [self.audit_log, self.trace_log], secrets.values())
        except (OSError, HoldfastError) as refused:
            self.context.note(f"its world could not be kept: {refused}")

    @property
    def remembered(self) -> dict[tuple[str, ...], object]:
        return self._site.remembered

    @property
    def unseen(self) -> dict[str, str]:
        lacking = {
            _AUDITS[one.feature]: one.why for one in self.isolation if not one.enforced and one.feature in _AUDITS
        }
        cut = {f"{type}s": "the audit log was cut" for type in self.log.cut}
        return lacking | self._unaudited() | cut

    def _unaudited(self) -> dict[str, str]:
        """Where something is kept, and nothing of it in tables that can be looked at."""
        holding = [one.spec.name for one in self.services.values() if not isinstance(one, Mock)]
        if not holding or self.databases:
            return {}
        return {"db_writes": f"{', '.join(holding)}: no Postgres or MySQL, and writes of others are not seen"}

    async def close(self) -> None:
        """Nothing is left, whatever has gone wrong before."""
        try:
            self._clock.close()
        finally:
            try:
                await self._parts.aclose()
            finally:
                shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What the sandbox enforces, and what of the spec this world could not do."""
        own = (*(self._clock.isolation if self._wants_clock else ()), *self._ingress.isolation)
        told = [one for one in self._site.shortcomings if one.feature not in {one.feature for one in own}]
        return (*self.sandbox.isolation, *told, *own)

    def _note(self, service: Service) -> None:
        for note in service.notes:
            self.context.note(note)

    # -- step by step ---------------------------------------------------------------------------
    def _lasting(self) -> dict[str, str]:
        """The environment without what leads to parts of this world that go with it."""
        passing = self._leads | self._clock.environ.keys()
        return {name: value for name, value in self.environ.items() if name not in passing}

    @property
    def _wants_clock(self) -> bool:
        asked = self.spec.determinism.clock is not None
        return asked or "clock" in disturbed(self._site.scenario(self.trial))

    async def _wind(self) -> None:
        """The agent's clock is set; where it cannot be, `isolation` says why."""
        seen_at = self.sandbox.inside(LENT)
        found = await self._clock.wind(self.spec.determinism.clock, self.sandbox, seen_at, self.environ)
        self._site.clock = self._clock.kept
        if "LD_PRELOAD" in self.environ and found:
            found["LD_PRELOAD"] += f" {self.environ['LD_PRELOAD']}"
        self.environ = {**self.environ, **found}

    def _hide_secrets(self, layer: Path) -> None:
        files = [
            PlacedFile(s.file, self._site.settings.secrets[s.name], mode=0o600) for s in self.spec.secrets if s.file
        ]
        place_files(layer, self.root, files)

    async def _open_services(self) -> None:
        for service in self.spec.services:
            keeper = await self._site.keeper(service)
            alone = self._site.disturbs(self.trial, service.name)
            live = await keeper.provide(self.trial, alone=alone)
            self._parts.push_async_callback(live.close)
            self.services[service.name] = live
            self._note(live)

    async def _open_sandbox(self, layer: Path, home: Path) -> None:
        site = self._site
        named = self._unresolved
        disturbances = disturbed(site.scenario(self.trial))
        sandbox_spec = SandboxSpec(
            name=self._folder.name,
            layers=(layer,),
            listen=tuple(dict.fromkeys((*listening(self.spec), *((NAMES,) if named else ())))),
            hosts=hosts(self.spec, named),
            home=home if any(home.iterdir()) else None,
            visible={**site.settings.visible, LENT: self._lent, **(self._name_files() if named else {})},
            links=self._links(),
            nested=site.settings.nested,
            resources=self.spec.resources,
            limits="limits" in disturbances,
            watched=tuple(sorted(disturbances & {"paths", "disk"})),
            commands=self._command,
        )
        self.sandbox = await site.backend.open(sandbox_spec)
        self._opened = True
        self._parts.push_async_callback(self.sandbox.close)

    def _links(self) -> dict[str, str]:
        """Links to programs of this machine, and the second path of the workspace."""
        workdir = self.spec.setup.workdir
        lacking = any(one.feature == WORKDIR for one in self._site.shortcomings)
        also = {} if workdir is None or lacking else {workdir.rstrip("/"): WORKSPACE}
        return {**self._site.settings.links, **also}

    @property
    def _unresolved(self) -> frozenset[str]:
        """Services whose names a fault may keep from resolving: those are asked for, and not in the hosts file."""
        return unresolved(self._site.scenario(self.trial))

    def _name_files(self) -> dict[str, Path]:
        found = {}
        for name, text in (("resolv.conf", RESOLV_CONF.format(host=NAMES[0])), ("nsswitch.conf", NSSWITCH_CONF)):
            (self._folder / name).write_text(text)
            found[f"/etc/{name}"] = self._folder / name
        return found

    def _command(self, command: Command) -> Callable[[CommandEnd], None]:
        """A command started inside; one that a fault of ours ran is not the agent's."""
        if not self._watched or self.disturbances.own(command.argv):
            return lambda end: None
        self.disturbances.saw("command")
        return self.log.command(command.argv, command.cwd, command.ts)

    async def _connect(self) -> None:
        """Our planes stand at every address inside."""
        site = self._site
        self.planes = await site.site_planes.open_address(sock=self.sandbox.listener(*GATEWAY))
        self._parts.push_async_callback(self.planes.close)
        self._service_planes = self._fronts()
        reached = await self._service_planes.open(self._unresolved)
        told = {name: service.variables for name, service in self.services.items()}
        led = self._led()
        self._leads = frozenset(led)
        self.environ = {
            **_SYSTEM,
            "HOME": self.sandbox.home,
            **site.settings.environ,
            **variables(self.spec, reached, told),
            **self.spec.setup.env,
            **self._secret_variables(),
            **led,
            **site.settings.agent_environ,
            **self._node_options(),
            **trial_variables(self.trial),
        }

    def _fronts(self) -> ServicePlanes:
        site, authority = self._site, self._site.site_planes.authority
        return ServicePlanes(
            self.spec,
            self.sandbox,
            self.services,
            self.planes,
            self.context,
            leaf=lambda name: None if authority is None else authority.leaf(name),
            disturbed=lambda name: site.disturbs(self.trial, name),
            wrote=lambda: self.disturbances.saw("db_write"),
            parts=self._parts,
        )

    def _secret_variables(self) -> dict[str, str]:
        return {s.name: self._site.settings.secrets[s.name] for s in self.spec.secrets if s.env}

    def _node_options(self) -> dict[str, str]:
        """What leads a Node's calls to us, beside what the spec asks of Node."""
        asked = {**self.spec.setup.env, **self._site.settings.agent_environ}.get("NODE_OPTIONS", "")
        if self._site.site_planes.authority is None:
            return {"NODE_OPTIONS": asked} if asked else {}
        lent = self.lend(NODE_PRELOAD.name, NODE_PRELOAD.read_bytes())
        return {"NODE_OPTIONS": node_options(asked, lent)}

    def _led(self) -> dict[str, str]:
        """The variables that lead the agent's calls to us; files of ours that they name are lent."""
        found = {**placeholders({}), **self.planes.environ}  # keys of the user's are added by the gateway, not shown
        folder = str(self._site.site_planes.folder)
        for name, value in found.items():
            if value.startswith(folder):
                path = Path(value)
                found[name] = self.lend(path.name, path.read_bytes())
        past = ",".join((found.get("NO_PROXY", ""), *hosts(self.spec)))
        return found | {"NO_PROXY": past, "no_proxy": past}
