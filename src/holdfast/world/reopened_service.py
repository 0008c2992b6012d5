"""Services of a kept world: the same kinds of servers, each with what the one before it held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.errors import HarnessError, HoldfastError
from holdfast.model.trial import Trial
from holdfast.model.world import EXTERNAL, ServiceSpec
from holdfast.protocols.service import Lasting, Mock, Service, ServiceKeeper
from holdfast.service_kinds import traits_of
from holdfast.world.kept_world import KeptWorld, dump_of
from holdfast.world.site_worlds import SiteWorlds

MOVED_ON = "it is the one that the trial used, and may have changed since"


class Reopened:
    """A service as others reach it; nothing more is asked of it: no fixture, no audit."""

    def __init__(self, service: Service) -> None:
        self.spec = service.spec
        self.upstream = service.upstream
        self.variables: Mapping[str, str] = service.variables
        self.notes: tuple[str, ...] = ()
        self._service = service

    async def close(self) -> None:
        await self._service.close()


class ReopenedKeeper:
    """Has one service, for one world."""

    def __init__(self, service: Service, keeper: ServiceKeeper) -> None:
        self._waiting: Service | None = service
        self._keeper = keeper

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        found, self._waiting = self._waiting, None
        if found is None:
            raise HarnessError("the services of a kept world are opened once")
        return found

    async def close(self) -> None:
        try:
            if self._waiting is not None:
                await self._waiting.close()
        finally:
            await self._keeper.close()


async def reopen(
    spec: ServiceSpec, worlds: SiteWorlds, trial: Trial, folder: Path, kept: KeptWorld, tell: Callable[[str], None]
) -> bool:
    """Has the worlds provide a service as the trial's agent left it; False, with a word why, if that cannot be had."""
    path = dump_of(folder, spec.name)
    if traits_of(spec).holds and not path.is_file():
        tell(f"service {spec.name} is not there: {why_not(kept, spec.name)}")
        return False
    try:
        keeper = await worlds.keeper(spec)
        service = await _restored(await keeper.provide(trial, alone=True), path)
    except HoldfastError as refused:
        tell(f"service {spec.name} is not there: {' '.join(str(refused).split())}")
        return False
    for note in [MOVED_ON] if spec.kind == EXTERNAL else _notes(kept, spec.name):
        tell(f"service {spec.name}: {note}")
    worlds.place(spec, ReopenedKeeper(service if isinstance(service, Mock) else Reopened(service), keeper))
    return True


async def _restored(service: Service, path: Path) -> Service:
    try:
        if isinstance(service, Lasting):
            await service.restore(path)
    except BaseException:
        await service.close()
        raise
    return service


def why_not(kept: KeptWorld, service: str) -> str:
    """Why nothing of a service was kept."""
    told = _notes(kept, service)
    return told[0] if told else "what it held was not kept"


def _notes(kept: KeptWorld, service: str) -> list[str]:
    return [note.removeprefix(f"{service}: ") for note in kept.notes if note.startswith(f"{service}: ")]
