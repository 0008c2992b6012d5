"""The kinds of services. Their implementations are imported when a service is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast import plugins
from holdfast.errors import UserError
from holdfast.model.world import CONTAINER, ServiceSpec, ServiceTraits
from holdfast.protocols.service import Service, ServiceContainer, ServiceKeeper, ServicePlace, WarmService
from holdfast.world.services.mock.routes import MockRoute

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from holdfast.world.services.drivers import Driver


@dataclass(frozen=True)
class AnyImage:
    """A container of an image, or a server of this machine that replaces it."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        if not place.docker:
            kinds = ", ".join(name for name in plugins.list_names("services") if name != CONTAINER)
            raise UserError(
                f"service {spec.name}: {spec.image or 'its image'} has no local server",
                code="service-unavailable",
                hint=f"run it with --backend docker; without it there are {kinds}",
            )
        from holdfast.world.services.container.keeper import open_container

        return await open_container(spec, place.folder)


@dataclass(frozen=True)
class ExternalKind:
    """A service that runs elsewhere. Trials share it and its state."""

    url: Annotated[str, Meta(description="Its address.", min_length=1)]

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.drivers import ExternalKeeper

        return ExternalKeeper(spec)


@dataclass(frozen=True)
class MockKind:
    """An HTTP server that answers by its routes, on 80, 443 and its ports."""

    record: Annotated[bool, Meta(description="Record the requests, for checks.")] = False
    default_response: Annotated[int, Meta(description="The status if no route matches.", ge=100, le=599)] = 404
    routes: Annotated[tuple[MockRoute, ...], Meta(description="The routes, tried in order.")] = ()

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, tls=(443,), records=True, holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.mock.server import MockKeeper

        return MockKeeper(spec, self.routes, self.default_response)


class _ServerKind:
    """The common part of kinds whose servers run on this machine, in a container, or elsewhere."""

    driver: ClassVar[str]

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        return await self._load_driver().open_keeper(spec)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        return await self._load_driver().contained(running, notes)

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service:
        return self._load_driver().elsewhere(spec, url)

    def _load_driver(self) -> Driver:
        from holdfast.world.services.drivers import DRIVERS

        return DRIVERS[self.driver]


@dataclass(frozen=True)
class MysqlKind(_ServerKind):
    """A separate MariaDB or MySQL server for every trial."""

    driver = "mysql"
    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=3306, images=("mysql", "mariadb"), schemes=("mysql", "mariadb"), wire="mysql", variable="DATABASE_URL"
    )


@dataclass(frozen=True)
class PostgresKind(_ServerKind):
    """A separate PostgreSQL server for every trial."""

    driver = "postgres"
    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=5432,
        images=("postgres", "postgis"),
        schemes=("postgresql", "postgres"),
        wire="postgres",
        variable="DATABASE_URL",
    )


@dataclass(frozen=True)
class RedisKind(_ServerKind):
    """A separate Redis server for every trial."""

    driver = "redis"
    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=6379, images=("redis", "valkey"), schemes=("redis", "rediss"), variable="REDIS_URL"
    )
