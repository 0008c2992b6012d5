"""The state that the boxed worlds of a site share: the sandbox backend, warm services, planes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

from msgspec import Struct

from holdfast.model.codec import encode_canonical
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation, ServiceSpec, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.protocols.service import ServiceKeeper
from holdfast.world.agent_mounts import NO_MOUNTS, Mounts
from holdfast.world.kept_world import WorldKeeper
from holdfast.world.services import open_keeper


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
    tell: Callable[[Trial, str], None] = lambda trial, what: None
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
