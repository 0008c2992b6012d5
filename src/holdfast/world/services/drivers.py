"""How each kind of server is run, by the name of its kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult

from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Service, ServiceContainer, ServiceKeeper, WarmService
from holdfast.world.services.container.contained import (
    open_contained_mysql,
    open_contained_postgres,
    open_contained_redis,
)
from holdfast.world.services.external import External, open_external_mysql, open_external_postgres
from holdfast.world.services.mysql.server import open_mysql
from holdfast.world.services.postgres.server import open_postgres
from holdfast.world.services.redis import open_redis


class Driver(NamedTuple):
    """How one kind is run: as a server of this machine, in a container, or externally."""

    open_keeper: Callable[[ServiceSpec], Awaitable[ServiceKeeper]]
    contained: Callable[[ServiceContainer, tuple[str, ...]], Awaitable[WarmService]]
    elsewhere: Callable[[ServiceSpec, SplitResult], Service]


DRIVERS: Mapping[str, Driver] = {
    "mysql": Driver(open_mysql, open_contained_mysql, open_external_mysql),
    "postgres": Driver(open_postgres, open_contained_postgres, open_external_postgres),
    "redis": Driver(open_redis, open_contained_redis, External),
}
