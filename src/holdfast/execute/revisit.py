"""Opens the world of a kept trial again: workspace and services as its agent left them, without faults."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shutil
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, HarnessError, HoldfastError, UserError
from holdfast.execute.context import LiveContext
from holdfast.execute.plane_needs import build_plane_settings
from holdfast.execute.resolved_spec import LIVE_MODELS, make_fill, resolve_agent
from holdfast.model.scenario import CALM
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trial import Trial
from holdfast.model.world import EXTERNAL, Fixture, Secret, ServiceSpec, Setup, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.processes.program import split_status
from holdfast.protocols.sandbox import Sandbox, Stdio
from holdfast.protocols.service import DumpableService, Mock, Service, ServiceKeeper
from holdfast.secrets.hidden import MASK
from holdfast.service_kinds import get_traits
from holdfast.world.kept_world import HOME, KeptWorld, get_dump_path
from holdfast.world.sandbox.bubblewrap import Bubblewrap
from holdfast.world.site_worlds import SiteWorlds, WorldSettings
from holdfast.world.world_factory import open_world

INSIDE = "/kept"
"""Where the complete kept folder is mounted inside, read-only."""

TellText = Callable[[str], None]


class StoredTrial(Struct, frozen=True):
    """The stored trial of a kept world, and the secrets that could be resolved again."""

    spec: Spec
    trial: Trial
    secrets: Mapping[str, str] = {}


async def revisit(
    folder: Path,
    kept_world: KeptWorld,
    past: StoredTrial,
    environ: Mapping[str, str],
    command: Sequence[str],
    tell: TellText,
) -> int:
    """Run a shell or a command in the world; return its exit code. `tell` receives what is missing."""
    # The shell shares this terminal, so a hang-up reaches Holdfast, too: it must still close the world.
    _end_on_signals()
    for note in kept_world.notes:
        tell(note)
    context = LiveContext(replace(past.trial, scenario=CALM))
    async with _open_worlds(folder, kept_world, past, environ, tell) as worlds, open_world(worlds, context) as world:
        with world.planes.serve_trial(context):
            return await visit(world.sandbox, {**kept_world.environ, **world.environ}, command)


def _end_on_signals() -> None:
    """Cancel this task on SIGTERM and SIGHUP, so that the world is closed in order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)


@asynccontextmanager
async def _open_worlds(
    folder: Path, kept_world: KeptWorld, past: StoredTrial, environ: Mapping[str, str], tell: TellText
) -> AsyncIterator[SiteWorlds]:
    """Open a site whose worlds start from the kept one."""
    spec = replace(past.spec, scenarios=())
    agent = _resolve_section(past, environ, tell)
    written = spec.world or WorldSpec()
    reopened: list[ServiceSpec] = []
    world = _use_kept_workspace(folder, _fill_world(written, past, environ, tell))
    settings = WorldSettings(
        fill=lambda trial: replace(world, services=tuple(reopened)),
        root=Path(kept_world.spec),
        secrets=past.secrets,
        visible={**_list_visible(kept_world), INSIDE: folder.resolve()},
        links=kept_world.links,
        home=home if (home := folder.resolve() / HOME).is_dir() else None,
        environ={"PATH": kept_world.environ["PATH"]} if "PATH" in kept_world.environ else {},
        agent_environ=agent.env,
    )
    async with AsyncExitStack() as opened:
        root = Path(kept_world.spec)
        planes = build_plane_settings(replace(spec, world=world), agent, root, environ, LIVE_MODELS, web=True)
        site_planes = SitePlanes(planes)
        opened.push_async_callback(site_planes.close)
        place = scratch.make("look")
        opened.callback(scratch.remove, place)
        place.chmod(0o711)  # servers have their own users
        shared = SiteWorlds(settings, await Bubblewrap.open_backend(place), site_planes, place)
        opened.push_async_callback(shared.close)
        for service in world.services:
            if await reopen(service, shared, past.trial, folder, kept_world, tell):
                reopened.append(service)
        yield shared


def _resolve_section(past: StoredTrial, environ: Mapping[str, str], tell: TellText) -> AgentSpec:
    """Return the agent's section, with its variables and the route to its models."""
    try:
        return replace(resolve_agent(past.spec.agent, environ, past.trial.params, past.secrets), mcp_config=None)
    except UserError as refused:
        tell(f"agent.env is not available: {refused}")
        return AgentSpec("command")


def _fill_world(written: WorldSpec, past: StoredTrial, environ: Mapping[str, str], tell: TellText) -> WorldSpec:
    """Return the world with its references resolved; entries with missing references are left out."""

    def fill(part: WorldSpec) -> WorldSpec | None:
        try:
            return make_fill(part, environ, past.secrets)(past.trial)
        except UserError as refused:
            names = [service.name for service in part.services] or [*part.setup.env]
            tell(f"{', '.join(names) or 'the network'} is not available: {refused}")
            return None

    services = [fill(WorldSpec(services=(service,))) for service in written.services]
    lines = [fill(WorldSpec(setup=Setup(env={name: text}))) for name, text in written.setup.env.items()]
    network = fill(WorldSpec(network=written.network)) or WorldSpec()
    return WorldSpec(
        setup=Setup(env={name: text for line in lines if line for name, text in line.setup.env.items()}),
        resources=replace(written.resources, timeout_ms=None),
        secrets=tuple(secret for secret in written.secrets if secret.name in past.secrets),
        services=tuple(one for one_service in services if one_service for one in one_service.services),
        network=replace(network.network, ingress=replace(network.network.ingress, allow=())),
        determinism=written.determinism,
    )


def _use_kept_workspace(folder: Path, world: WorldSpec) -> WorldSpec:
    """Return the world on the kept workspace; a file that held only a secret gets it back."""
    workspace = folder.resolve() / "workspace"
    fixtures = (Fixture("directory", source=str(workspace)),) if workspace.is_dir() else ()

    def restore_secret(secret: Secret) -> Secret:
        path = workspace / (secret.file or "")
        masked = secret.file and path.is_file() and path.read_bytes() == MASK
        return secret if masked else replace(secret, file=None)

    return replace(world, fixtures=fixtures, secrets=tuple(map(restore_secret, world.secrets)))


def _list_visible(world: KeptWorld) -> dict[str, Path]:
    return {inside: Path(path) for inside, path in world.visible.items() if Path(path).exists()}


MAY_HAVE_CHANGED = "it is the one that the trial used, and may have changed since"


class ReopenedService:
    """A service that can only be connected to: it has no fixtures and no audit."""

    def __init__(self, service: Service) -> None:
        self.spec = service.spec
        self.upstream = service.upstream
        self.variables: Mapping[str, str] = service.variables
        self.notes: tuple[str, ...] = ()
        self._service = service

    async def close(self) -> None:
        await self._service.close()


class ReopenedKeeper:
    """Provides one service to one world."""

    def __init__(self, service: Service, keeper: ServiceKeeper) -> None:
        self._waiting: Service | None = service
        self._keeper = keeper

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        service, self._waiting = self._waiting, None
        if service is None:
            raise HarnessError("the services of a kept world are opened once", code="bug")
        return service

    async def close(self) -> None:
        try:
            if self._waiting is not None:
                await self._waiting.close()
        finally:
            await self._keeper.close()


async def reopen(
    spec: ServiceSpec,
    worlds: SiteWorlds,
    trial: Trial,
    folder: Path,
    kept_world: KeptWorld,
    tell: Callable[[str], None],
) -> bool:
    """Make the worlds provide a service as the trial's agent left it.

    Returns False and calls `tell` if that is impossible.
    """
    path = get_dump_path(folder, spec.name)
    if get_traits(spec).holds and not path.is_file():
        missing = kept_world.service_notes.get(spec.name, "its content was not stored")
        tell(f"service {spec.name} is not available: {missing}")
        return False
    try:
        keeper = await worlds.find_keeper(spec)
        service = await _restore(await keeper.provide(trial, alone=True), path)
    except HoldfastError as refused:
        tell(f"service {spec.name} is not available: {' '.join(str(refused).split())}")
        return False
    if note := MAY_HAVE_CHANGED if spec.kind == EXTERNAL else kept_world.service_notes.get(spec.name):
        tell(f"service {spec.name}: {note}")
    worlds.replace_keeper(
        spec, ReopenedKeeper(service if isinstance(service, Mock) else ReopenedService(service), keeper)
    )
    return True


async def _restore(service: Service, path: Path) -> Service:
    try:
        if isinstance(service, DumpableService):
            await service.restore(path)
    except BaseException:
        await service.close()
        raise
    return service


_SHELL = "/bin/sh"
_CHUNK = 1 << 16


async def visit(sandbox: Sandbox, environ: Mapping[str, str], command: Sequence[str] = ()) -> int:
    """Run a shell or a command in a sandbox, in this terminal; return its exit code."""
    # setsid gives the shell a terminal of its own, so that it can control jobs.
    setsid = shutil.which("setsid", path="/usr/bin:/bin") if sys.stdin.isatty() else None
    shell = [setsid, "-cw", _SHELL] if setsid else [_SHELL]
    return await _attach(
        sandbox, command or shell, {**environ, "TERM": os.environ.get("TERM", "dumb"), "PS1": "kept $ "}
    )


async def _attach(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str]) -> int:
    if not sys.stdin.isatty():
        return await _run_program(sandbox, argv, env, Stdio(0, 1, 2))
    # The program inside gets a terminal of its own, because the user's own one would connect it to processes outside,
    # and let it type commands into their shell.
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    loop = asyncio.get_running_loop()
    with _use_raw_mode():
        loop.add_reader(0, _copy_data, 0, ours)
        loop.add_reader(ours, _copy_data, ours, 1)
        try:
            return await _run_program(sandbox, argv, env, Stdio(theirs, theirs, theirs))
        finally:
            loop.remove_reader(0)
            loop.remove_reader(ours)
            os.close(theirs)
            os.close(ours)


async def _run_program(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str], stdio: Stdio) -> int:
    try:
        program = await sandbox.start(argv, env, stdio)
    except OSError as refused:
        raise AgentUnavailable(
            f"cannot start {argv[0]}: {refused.strerror}", code="agent-not-started", config=True
        ) from refused
    try:
        while not await program.wait_for_end(3600.0):
            pass
    finally:
        await program.end(0.0)
    code, number = split_status(program.status)
    return code if code is not None else 128 + (number or signal.SIGKILL)


def _copy_data(source: int, target: int) -> None:
    try:
        data = os.read(source, _CHUNK)
    except OSError:  # the shell has closed its terminal
        data = b""
    if not data:
        asyncio.get_running_loop().remove_reader(source)
        return
    while data:  # a terminal may take only a part of it at a time
        data = data[os.write(target, data) :]


@contextmanager
def _use_raw_mode() -> Iterator[None]:
    """Switch the user's terminal to raw mode, so that every key is passed on."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # keeps what was typed already
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
