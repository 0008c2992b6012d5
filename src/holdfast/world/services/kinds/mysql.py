"""mysql: a MariaDB or MySQL server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import Service, ServiceContainer, ServiceKeeper, ServicePlace, WarmService

if TYPE_CHECKING:
    from urllib.parse import SplitResult


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

        return await open_mysql(spec, place.folder)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_mysql

        return contained_mysql(running, notes)

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service:
        from holdfast.world.services.external import external_mysql

        return external_mysql(spec, url)
