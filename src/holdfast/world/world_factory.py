"""What a site keeps warm of its worlds: the sandbox backend, services, planes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from msgspec import Struct

from holdfast.errors import HarnessError, UserError
from holdfast.model.codec import canonical
from holdfast.model.spec import CALM, Scenario
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation, ServiceSpec, WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.protocols import SandboxBackend, ServiceKeeper, TrialContext
from holdfast.world.boxed_world import BoxedWorld
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
    environ: Mapping[str, str] = {}
    """What every program inside finds in its environment."""
    agent_environ: Mapping[str, str] = {}
    scenarios: tuple[Scenario, ...] = ()
    variables: Callable[[Trial], Mapping[str, str]] = lambda trial: {}
    keeping: WorldKeeper | None = None
    """Where worlds are kept for a look."""
    told: Callable[[Trial, str], None] = lambda trial, what: None
    """Hears what is of use only while a trial runs."""


class WorldFactory:
    """Opens a world for each trial."""

    def __init__(self, order: WorldSettings, backend: SandboxBackend, site_planes: SitePlanes, folder: Path) -> None:
        self.order = order
        self.backend = backend
        self.site_planes = site_planes
        self.shortcomings: tuple[Isolation, ...] = ()
        self.clock: Isolation | None = None
        """Whether agents see the clock that is set for them, once that was tried."""
        self._folder = folder
        self._keepers: dict[bytes, ServiceKeeper] = {}
        self._opening = asyncio.Lock()
        self._numbers = count(1)
        self._scenarios = {scenario.name: scenario for scenario in order.scenarios}
        self._stormy = {
            scenario.name: frozenset(i.target for i in scenario.injections if i.plane in ("service", "world"))
            for scenario in order.scenarios
        }

    @asynccontextmanager
    async def open(self, context: TrialContext) -> AsyncIterator[BoxedWorld]:
        """A world for the trial, gone when this closes."""
        trial = context.trial
        folder = self._folder / f"{trial.id}-{next(self._numbers)}"
        world = BoxedWorld(self, self.order.fill(trial), trial, folder, context)
        try:
            await _in_time(world)
            yield world
        except asyncio.CancelledError:
            raise
        except BaseException:
            await self._keep(world)
            raise
        else:
            await self._keep(world)
        finally:
            await world.close()

    async def _keep(self, world: BoxedWorld) -> None:
        if self.order.keeping is not None and world.worth_a_look:
            await world.keep(self.order.keeping)

    async def keeper(self, service: ServiceSpec) -> ServiceKeeper:
        """What is kept warm of a service: the same for all trials that want the same."""
        key = canonical(service)
        async with self._opening:
            if key not in self._keepers:
                from holdfast.world.services import open_keeper

                folder = self._folder / f"service-{len(self._keepers)}"
                folder.mkdir(mode=0o755, exist_ok=True)  # an attempt that failed has left it
                disturbed = any(service.name in names for names in self._stormy.values())
                docker = self.backend.name == "docker"
                self._keepers[key] = await open_keeper(service, folder, server_faults=disturbed, docker=docker)
        return self._keepers[key]

    def place(self, service: ServiceSpec, keeper: ServiceKeeper) -> None:
        """From now on that keeper, which is closed with the others, provides the service."""
        self._keepers[canonical(service)] = keeper

    def scenario(self, trial: Trial) -> Scenario:
        return self._scenarios.get(trial.scenario, CALM)

    def disturbs(self, trial: Trial, service: str) -> bool:
        """Whether the trial's scenario hits the service itself."""
        return service in self._stormy.get(trial.scenario, ())

    async def close(self) -> None:
        try:
            for keeper in self._keepers.values():
                await keeper.close()
        finally:
            try:
                await self.backend.close()
            finally:
                scratch.remove(self._folder)


async def _in_time(world: BoxedWorld) -> None:
    """Opens it, within the time that the trial has."""
    limit_ms = world.spec.resources.timeout_ms
    try:
        async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000) as limit:
            try:
                await world.open()
            except UserError as refused:
                raise HarnessError(f"{refused}. {refused.hint}" if refused.hint else str(refused)) from refused
    except TimeoutError:
        if not limit.expired():
            raise
        held_up = f": {world.doing} was under way" if world.doing else ""
        why = f"the world was not ready within the trial's {limit_ms} ms (resources.timeout){held_up}"
        raise HarnessError(why) from None
