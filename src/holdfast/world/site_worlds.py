"""What the boxed worlds of a site share: backend, warm services, planes; and what they cannot do of the spec."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path, PurePosixPath

from msgspec import Struct

from holdfast.errors import UserError
from holdfast.model.capabilities import COMMANDS, CPU, DISK, FILES, MEMORY, PIDS, build_missing
from holdfast.model.codec import encode_canonical
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.traits import Disturbed
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation, ServiceSpec, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.plugins import get_fault_traits
from holdfast.processes import scratch
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.protocols.service import ServiceKeeper
from holdfast.world.agent_mounts import NO_MOUNTS, Mounts
from holdfast.world.ingress import list_unsupported_ingress
from holdfast.world.kept_world import WorldKeeper
from holdfast.world.services import open_keeper
from holdfast.world.world_clock import find_clock_library


class WorldSettings(Struct, frozen=True):
    """The settings for the worlds of a site."""

    fill: Callable[[Trial], WorldSpec]
    """The world of one trial, with references replaced by values."""
    root: Path
    """The spec's folder."""
    secrets: Mapping[str, str] = {}
    visible: Mapping[str, Path] = {}
    """Paths of this machine that the agent sees in addition to the system: its own files, its interpreter."""
    links: Mapping[str, str] = {}
    """Links to them, by path."""
    home: Path | None = None
    """Initial content of every trial's home."""
    nested: bool = False
    """Whether the agent may create its own sandboxes."""
    mounts: Mounts = NO_MOUNTS
    """The agent's own files among them."""
    environ: Mapping[str, str] = {}
    """Environment variables of every program inside."""
    agent_environ: Mapping[str, str] = {}
    keeping: WorldKeeper | None = None
    """Where worlds are kept for inspection."""
    on_message: Callable[[Trial, str], None] = lambda trial, text: None
    """Receives messages that are useful only while a trial runs."""


class SiteWorlds:
    """The state that the worlds of a site share. Close it after the last world."""

    def __init__(
        self,
        settings: WorldSettings,
        backend: SandboxBackend,
        site_planes: SitePlanes,
        folder: Path,
        unsupported: tuple[Isolation, ...] = (),
    ) -> None:
        self.settings = settings
        self.backend = backend
        self.site_planes = site_planes
        self.unsupported = unsupported
        """What the spec asks for and no trial here can do."""
        self.clock: Isolation | None = None
        """Whether agents see the clock that is set for them, once tested."""
        self.folder = folder
        self.numbers = count(1)
        self.remembered: dict[tuple[str, ...], object] = {}
        """Values that checks store for all trials."""
        self._keepers: dict[bytes, ServiceKeeper] = {}
        self._opening = asyncio.Lock()

    async def find_keeper(self, service: ServiceSpec) -> ServiceKeeper:
        """Return the keeper of a service, shared by all trials with the same service settings."""
        key = encode_canonical(service)
        # One trial opens the service, and the others wait for it: each would otherwise start a server of its own for
        # all trials.
        async with self._opening:
            if key not in self._keepers:
                folder = self.folder / f"service-{len(self._keepers)}"
                folder.mkdir(mode=0o755, exist_ok=True)  # a failed attempt was removed
                docker = self.backend.traits.image
                self._keepers[key] = await open_keeper(service, folder, docker=docker)
        return self._keepers[key]

    def replace_keeper(self, service: ServiceSpec, keeper: ServiceKeeper) -> None:
        """Replace the keeper of a service; it is closed with the others."""
        self._keepers[encode_canonical(service)] = keeper

    def is_disturbed(self, trial: Trial, service: str) -> bool:
        """Return whether the trial's scenario hits the service itself."""
        return any(i.target == service for i in trial.scenario.injections if i.plane in ("service", "world"))

    async def close(self) -> None:
        """Close everything, even if something fails."""
        async with AsyncExitStack() as parts:
            parts.callback(scratch.remove, self.folder)
            parts.push_async_callback(self.backend.close)
            for keeper in self._keepers.values():
                parts.push_async_callback(keeper.close)


async def list_unsupported(
    spec: WorldSpec,
    scenarios: Iterable[Scenario],
    backend: SandboxBackend,
    *,
    agent: AgentSpec | None = None,
    visible: Iterable[str] = (),
) -> tuple[Isolation, ...]:
    """Return every unsupported key of the spec. `visible` are paths of this machine that sandboxes see."""
    features = [*_list_unsupported_keys(spec, backend, agent), *_check_workdir(spec.setup.workdir, backend, visible)]
    if spec.determinism.clock is not None or any("clock" in find_disturbed(scenario) for scenario in scenarios):
        library = await find_clock_library()
        features += [library] if isinstance(library, Isolation) else []
    return tuple(features)


def find_disturbed(scenario: Scenario) -> frozenset[Disturbed]:
    """Return the targets of a scenario's world faults that the sandbox must know from the start."""
    worldly = (
        get_fault_traits(injection.plane, injection.mode).disturbs
        for injection in scenario.injections
        if injection.plane == "world"
    )
    return frozenset(part for part in worldly if part is not None)


def _list_unsupported_keys(spec: WorldSpec, backend: SandboxBackend, agent: AgentSpec | None) -> Iterator[Isolation]:
    isolates, name = backend.traits.isolates, backend.name
    if agent is not None and backend.traits.image and agent.nested_sandbox:
        yield build_missing("container-nested")
    if agent is not None and backend.traits.image and agent.programs:
        yield build_missing("container-programs", programs=", ".join(agent.programs))
    if spec.base is not None and not backend.traits.image:
        yield build_missing("image-ignored", image=spec.base, backend=name)
    if spec.setup.packages:
        yield build_missing("packages-ignored", packages=", ".join(spec.setup.packages), backend=name)
    yield from list_unsupported_ingress(spec.network, shared=not isolates)
    if spec.determinism.dns == "real":
        yield build_missing("dns-real")
    if spec.services and not isolates:
        yield build_missing("services-unnamed")
    if spec.forbidden.http_except is not None and not isolates:
        yield build_missing("http-unproxied")
    if spec.network.dns_overrides and not isolates:
        yield build_missing("names-unproxied")


def _check_workdir(path: str | None, backend: SandboxBackend, visible: Iterable[str]) -> Iterator[Isolation]:
    """Yield the additional path of the workspace, if it cannot be created."""
    if path is None:
        return
    at = PurePosixPath(path)
    clashes = sorted(
        shown_path
        for shown_path in visible
        if at.is_relative_to(shown_path) or PurePosixPath(shown_path).is_relative_to(at)
    )
    if not backend.traits.isolates:
        yield build_missing("workdir-missing", backend=backend.name, path=path)
    elif clashes:
        yield build_missing("workdir-hidden", shown=clashes[0], path=path)


def select_lacking(spec: WorldSpec, isolation: Iterable[Isolation]) -> list[Isolation]:
    """Return what is not enforced, without limits and logs that the spec does not ask for."""
    unasked = {
        MEMORY: spec.resources.memory is None,
        CPU: spec.resources.cpu is None,
        DISK: spec.resources.disk is None,
        PIDS: spec.resources.pids is None,
        COMMANDS: not spec.audit.commands,
        FILES: not spec.audit.file_writes,
    }
    return [entry for entry in isolation if not entry.enforced and not unasked.get(entry.feature, False)]


def refuse_lacking(spec: WorldSpec, isolation: Iterable[Isolation], backend: str) -> None:
    """Raise UserError that names every feature that cannot be enforced."""
    missing = select_lacking(spec, isolation)
    if missing:
        features = "; ".join(f"{entry.feature} ({entry.why})" if entry.why else entry.feature for entry in missing)
        hint = "remove --strict-world, use another --backend, or remove the setting"
        raise UserError(f"the {backend} backend cannot enforce here: {features}", code="world-not-enforced", hint=hint)
