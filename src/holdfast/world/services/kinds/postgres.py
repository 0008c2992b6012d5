"""postgres: a PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import Service, ServiceContainer, ServiceKeeper, ServicePlace, WarmService

if TYPE_CHECKING:
    from urllib.parse import SplitResult


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

        return await open_postgres(spec, place.folder)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_postgres

        return await contained_postgres(running, notes)

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service:
        from holdfast.world.services.external import external_postgres

        return external_postgres(spec, url)
