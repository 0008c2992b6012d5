"""The kinds of services. What it takes to run one is imported when it is opened."""

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


@dataclass(frozen=True)
class AnyImage:
    """A container of an image, or the server of this machine that stands in for it."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        if not place.docker:
            raise UserError(
                f"service {spec.name}: {spec.image or 'its image'} has no local server",
                code="service-unavailable",
                hint=f"run it with --backend docker; without it there are {', '.join(_others())}",
            )
        from holdfast.world.services.container.keeper import open_container

        return await open_container(spec, place.folder)


def _others() -> list[str]:
    return [name for name in plugins.names("services") if name != CONTAINER]


@dataclass(frozen=True)
class ExternalKind:
    """A service that runs elsewhere. Trials share it and its state."""

    url: Annotated[str, Meta(description="Its address.", min_length=1)]

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.external import open_external

        return await open_external(spec)


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


@dataclass(frozen=True)
class MysqlKind:
    """A MariaDB or MySQL server of its own for every trial."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=3306,
        images=("mysql", "mariadb"),
        schemes=("mysql", "mariadb"),
        wire="mysql",
        variable="DATABASE_URL",
    )

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.mysql.server import open_mysql

        return await open_mysql(spec)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_mysql

        return contained_mysql(running, notes)

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service:
        from holdfast.world.services.external import external_mysql

        return external_mysql(spec, url)


@dataclass(frozen=True)
class PostgresKind:
    """A PostgreSQL server of its own for every trial."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=5432,
        images=("postgres", "postgis"),
        schemes=("postgresql", "postgres"),
        wire="postgres",
        variable="DATABASE_URL",
    )

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.postgres.server import open_postgres

        return await open_postgres(spec)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_postgres

        return await contained_postgres(running, notes)

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service:
        from holdfast.world.services.external import external_postgres

        return external_postgres(spec, url)


@dataclass(frozen=True)
class RedisKind:
    """A Redis server of its own for every trial."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=6379, images=("redis", "valkey"), schemes=("redis", "rediss"), variable="REDIS_URL"
    )

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.redis import open_redis

        return await open_redis(spec)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_redis

        return contained_redis(running, notes)
