"""Opens the world of a kept trial again: workspace and services as its agent left them, without faults."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.execute.context import LiveContext
from holdfast.execute.plane_needs import build_plane_settings
from holdfast.execute.resolved_spec import LIVE_MODELS, make_fill, resolve_agent
from holdfast.model.scenario import CALM
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trial import Trial
from holdfast.model.world import Fixture, Secret, ServiceSpec, Setup, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.secrets.hidden import MASK
from holdfast.world.kept_world import HOME, KeptWorld
from holdfast.world.reopened_world import reopen, visit
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
