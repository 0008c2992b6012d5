"""What the boxed worlds of a site share: the sandbox backend, services kept warm, planes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from holdfast.model.codec import canonical
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation, ServiceSpec, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.protocols.service import ServiceKeeper
from holdfast.world.agent_mounts import NO_MOUNTS, Mounts
from holdfast.world.kept_world import WorldKeeper


class WorldSettings(Struct, frozen=True):
    """What the worlds of a site are opened with."""

    fill: Callable[[Trial], WorldSpec]
    """The world of one trial, its references replaced by values."""
    root: Path
    """The spec's folder."""
    secrets: Mapping[str, str] = {}
    visible: Mapping[str, Path] = {}
    """What of this machine the agent sees, beside the system: its own files, its interpreter."""
    links: Mapping[str, str] = {}
    """Links that lead there, by path."""
    home: Path | None = None
    """What the home of every trial begins with."""
    nested: bool = False
    """The agent may make sandboxes of its own."""
    mounts: Mounts = NO_MOUNTS
    """The agent's own files among them."""
    environ: Mapping[str, str] = {}
    """What every program inside finds in its environment."""
    agent_environ: Mapping[str, str] = {}
    keeping: WorldKeeper | None = None
    """Where worlds are kept for a look."""
    told: Callable[[Trial, str], None] = lambda trial, what: None
    """Hears what is of use only while a trial runs."""


class SiteWorlds:
    """Kept between trials. Close it when the last world is closed."""

    def __init__(self, settings: WorldSettings, backend: SandboxBackend, site_planes: SitePlanes, folder: Path) -> None:
        self.settings = settings
        self.backend = backend
        self.site_planes = site_planes
        self.unsupported: tuple[Isolation, ...] = ()
        """What the spec asks for and no trial here can do."""
        self.clock: Isolation | None = None
        """Whether agents see the clock that is set for them, once that was tried."""
        self.folder = folder
        self.remembered: dict[tuple[str, ...], object] = {}
        """What checks keep for all trials."""
        self._keepers: dict[bytes, ServiceKeeper] = {}
        self._opening = asyncio.Lock()

    async def keeper(self, service: ServiceSpec) -> ServiceKeeper:
        """What is kept warm of a service: the same for all trials that want the same."""
        key = canonical(service)
        async with self._opening:
            if key not in self._keepers:
                from holdfast.world.services import open_keeper

                folder = self.folder / f"service-{len(self._keepers)}"
                folder.mkdir(mode=0o755, exist_ok=True)  # an attempt that failed has left it
                docker = self.backend.traits.image
                self._keepers[key] = await open_keeper(service, folder, docker=docker)
        return self._keepers[key]

    def place(self, service: ServiceSpec, keeper: ServiceKeeper) -> None:
        """From now on that keeper, which is closed with the others, provides the service."""
        self._keepers[canonical(service)] = keeper

    def disturbs(self, trial: Trial, service: str) -> bool:
        """Whether the trial's scenario hits the service itself."""
        return any(i.target == service for i in trial.scenario.injections if i.plane in ("service", "world"))

    async def close(self) -> None:
        """All of it, whatever fails."""
        async with AsyncExitStack() as parts:
            parts.callback(scratch.remove, self.folder)
            parts.push_async_callback(self.backend.close)
            for keeper in self._keepers.values():
                parts.push_async_callback(keeper.close)
