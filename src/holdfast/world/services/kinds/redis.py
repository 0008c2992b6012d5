"""redis: a Redis server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import ServiceContainer, ServiceKeeper, ServicePlace, WarmService


@dataclass(frozen=True)
class RedisKind:
    """A Redis server of its own for every trial."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(
        port=6379, images=("redis", "valkey"), schemes=("redis", "rediss"), variable="REDIS_URL"
    )

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.redis import open_redis

        return await open_redis(spec, place.folder)

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService:
        from holdfast.world.services.container.contained import contained_redis

        return contained_redis(running, notes)
