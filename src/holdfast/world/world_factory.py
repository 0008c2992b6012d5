"""Opens a boxed world for each trial: services, sandbox, planes, fixtures, in that order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.errors import HarnessError, UserError
from holdfast.model.capabilities import WORKDIR
from holdfast.model.world import PlacedFile
from holdfast.planes.http.trust import NODE_PRELOAD, add_node_preload
from holdfast.planes.site_planes import build_placeholder_keys
from holdfast.planes.tcp.names import NSSWITCH_CONF, RESOLV_CONF, list_unresolved
from holdfast.processes.startable import build_trial_variables as trial_variables
from holdfast.protocols.sandbox import SandboxSpec
from holdfast.protocols.trial import TrialContext
from holdfast.world.boxed_world import LENT_FOLDER, BoxedWorld
from holdfast.world.sandbox.workspace import copy_tree
from holdfast.world.service_planes import GATEWAY, NAMES, ServicePlanes, build_variables, list_hosts, list_listeners
from holdfast.world.site_worlds import SiteWorlds
from holdfast.world.supervisors.messages import WORKSPACE
from holdfast.world.workspace import fill_databases, place_files, place_fixtures, run_setup

_SYSTEM = {"LANG": "C.UTF-8", "TERM": "dumb"}


@asynccontextmanager
async def open_world(site: SiteWorlds, context: TrialContext) -> AsyncIterator[BoxedWorld]:
    """Open the world of a trial; leaving the context closes it."""
    trial, keeping = context.trial, site.settings.keeping
    world = BoxedWorld(site, site.settings.fill(trial), site.folder / f"{trial.id}-{next(site.numbers)}", context)
    opening = _WorldOpening(world, site)
    try:
        try:
            await opening.open_in_time()
            yield world
        except asyncio.CancelledError:
            keeping = None
            raise
        finally:
            if keeping is not None and world.worth_keeping:
                await world.keep(keeping, opened=opening.has_sandbox)
    finally:
        await world.close()


class _WorldOpening:
    """Builds one world."""

    def __init__(self, world: BoxedWorld, site: SiteWorlds) -> None:
        self._world = world
        self._site = site
        self._spec = world.spec
        self._settings = site.settings
        self._unresolved = list_unresolved(world.trial.scenario)
        """Services whose names a fault may prevent from resolving.

        The name server answers for them, not the hosts file.
        """
        self.has_sandbox = False
        world.links = self._build_links()

    async def open_in_time(self) -> None:
        """Open everything in order within the trial's time; HarnessError names the step that failed."""
        limit_ms = self._spec.resources.timeout_ms
        try:
            async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000) as limit:
                try:
                    await self._open()
                except UserError as refused:
                    why = f"{refused}. {refused.hint}" if refused.hint else str(refused)
                    raise HarnessError(why, code=refused.code) from refused
        except TimeoutError:
            if not limit.expired():
                raise
            held_up = f": {self._world.begun[-1]} was under way" if self._world.begun else ""
            why = f"the sandbox was not ready within the trial's {limit_ms} ms (resources.timeout){held_up}"
            raise HarnessError(why, code="world-not-ready") from None

    async def _open(self) -> None:
        world, spec = self._world, self._spec
        # The order matters. The agent's files must exist before the sandbox mounts them; services before their
        # addresses are known; planes before setup commands that call services. Snapshots come last, so that fixtures
        # and setup do not count as the agent's writes.
        layer, home = self._make_folders()
        await self._open_services()
        await self._open_sandbox(layer, home)
        await self._connect()
        databases = world.services.databases
        await fill_databases(spec.fixtures, databases, world.root, world.trial, world.begun.append)
        await run_setup(spec.setup.commands, world.sandbox, world.environ, world.begun.append)
        if world.wants_clock:
            await self._set_clock()
        for database in databases.values():
            await database.mark()
        await world.sandbox.snapshot()
        world.parts.push_async_callback(world.ingress.close)
        await world.ingress.open(world.sandbox, {world.sandbox.listener(*GATEWAY).getsockname()[1]})
        for note in world.ingress.notes:
            world.context.sink.note(note)
            self._settings.on_message(world.trial, note)

    def _make_folders(self) -> tuple[Path, Path]:
        """Return the folders that form the initial workspace and home."""
        world, setup, root = self._world, self._spec.setup, self._world.root
        layer, home = world.folder / "layer", world.folder / "home"
        for folder in (world.lent, layer, home):
            folder.mkdir(parents=True)
        place_fixtures(layer, root, self._spec.fixtures)
        place_files(layer, root, setup.files)
        if self._settings.home is not None:
            copy_tree(self._settings.home, home)
        place_files(home, root, setup.home_files)
        secrets = [PlacedFile(s.file, self._settings.secrets[s.name], mode=0o600) for s in self._spec.secrets if s.file]
        place_files(layer, root, secrets)
        return layer, home

    async def _open_services(self) -> None:
        world = self._world
        for service in self._spec.services:
            keeper = await self._site.find_keeper(service)
            live = await keeper.provide(world.trial, alone=self._site.is_disturbed(world.trial, service.name))
            world.parts.push_async_callback(live.close)
            world.services[service.name] = live
            for note in live.notes:
                world.context.sink.note(note)

    async def _open_sandbox(self, layer: Path, home: Path) -> None:
        world, spec, unresolved_names = self._world, self._spec, self._unresolved
        sandbox_spec = SandboxSpec(
            name=world.folder.name,
            layers=(layer,),
            listen=tuple(dict.fromkeys((*list_listeners(spec), *((NAMES,) if unresolved_names else ())))),
            hosts=list_hosts(spec, unresolved_names),
            home=home if any(home.iterdir()) else None,
            visible={
                **self._settings.visible,
                LENT_FOLDER: world.lent,
                **(self._write_name_files() if unresolved_names else {}),
            },
            links=world.links,
            nested=self._settings.nested,
            resources=spec.resources,
            limits="limits" in world.disturbed,
            watched=tuple(sorted(world.disturbed & {"paths", "disk"})),
            commands=world.record_command,
        )
        world.sandbox = await self._site.backend.open(sandbox_spec)
        self.has_sandbox = True
        world.parts.push_async_callback(world.sandbox.close)

    def _build_links(self) -> dict[str, str]:
        """Return the links to programs of this machine, and the additional path of the workspace."""
        workdir = self._spec.setup.workdir
        lacking = any(entry.feature == WORKDIR for entry in self._site.unsupported)
        workdir_link = {} if workdir is None or lacking else {workdir.rstrip("/"): WORKSPACE}
        return {**self._settings.links, **workdir_link}

    def _write_name_files(self) -> dict[str, Path]:
        files = {}
        for name, text in (("resolv.conf", RESOLV_CONF.format(host=NAMES[0])), ("nsswitch.conf", NSSWITCH_CONF)):
            (self._world.folder / name).write_text(text)
            files[f"/etc/{name}"] = self._world.folder / name
        return files

    async def _connect(self) -> None:
        """Start Holdfast's planes at every address inside."""
        world, site, settings = self._world, self._site, self._settings
        world.planes = await site.site_planes.open_address(sock=world.sandbox.listener(*GATEWAY))
        world.parts.push_async_callback(world.planes.close)
        world.service_planes = self._make_service_planes()
        addresses = await world.service_planes.open(self._unresolved)
        patterns = {name: service.variables for name, service in world.services.items()}
        routed = self._route_calls()
        world.plane_variables = frozenset(routed)
        # Later entries override earlier ones: what the spec sets overrides the services' variables, the routes to the
        # planes override both, and the agent's own section has the last word on everything but the trial's identity.
        world.environ = {
            **_SYSTEM,
            "HOME": world.sandbox.home,
            **settings.environ,
            **build_variables(self._spec, addresses, patterns),
            **self._spec.setup.env,
            **{s.name: settings.secrets[s.name] for s in self._spec.secrets if s.env},
            **routed,
            **settings.agent_environ,
            **self._build_node_options(),
            **trial_variables(world.trial),
        }

    def _make_service_planes(self) -> ServicePlanes:
        world, site, authority = self._world, self._site, self._site.site_planes.authority
        return ServicePlanes(
            self._spec,
            world.sandbox,
            world.services,
            world.planes,
            world.context,
            leaf=lambda name: None if authority is None else authority.get_leaf_context(name),
            disturbed=lambda name: site.is_disturbed(world.trial, name),
            wrote=lambda: world.disturbances.handle_event("db_write", write=True),
            parts=world.parts,
        )

    def _route_calls(self) -> dict[str, str]:
        """Return the variables that route the agent's calls to Holdfast, and lends the files that they name."""
        world = self._world
        # The gateway adds the user's keys; the agent does not see them.
        environ = {**build_placeholder_keys({}), **world.planes.environ}
        folder = str(self._site.site_planes.folder)
        for name, value in environ.items():
            if value.startswith(folder):
                path = Path(value)
                environ[name] = world.lend(path.name, path.read_bytes())
        past = ",".join((environ.get("NO_PROXY", ""), *list_hosts(self._spec)))
        return environ | {"NO_PROXY": past, "no_proxy": past}

    def _build_node_options(self) -> dict[str, str]:
        """Return NODE_OPTIONS that route Node's calls to Holdfast, together with those of the spec."""
        options = {**self._spec.setup.env, **self._settings.agent_environ}.get("NODE_OPTIONS", "")
        if self._site.site_planes.authority is None:
            return {"NODE_OPTIONS": options} if options else {}
        lent = self._world.lend(NODE_PRELOAD.name, NODE_PRELOAD.read_bytes())
        return {"NODE_OPTIONS": add_node_preload(options, lent)}

    async def _set_clock(self) -> None:
        """Set the agent's clock; if that is impossible, `isolation` says why."""
        world = self._world
        folder_inside = world.sandbox.inside(LENT_FOLDER)
        environ = await world.clock.start(self._spec.determinism.clock, world.sandbox, folder_inside, world.environ)
        self._site.clock = world.clock.support
        if "LD_PRELOAD" in world.environ and environ:
            environ["LD_PRELOAD"] += f" {world.environ['LD_PRELOAD']}"
        world.environ = {**world.environ, **environ}
