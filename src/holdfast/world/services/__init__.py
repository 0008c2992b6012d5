"""Services of the world: real servers, fresh for every trial, with nothing of them left afterwards."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UserError
from holdfast.model.world import ServiceSpec
from holdfast.protocols import ServiceKeeper


async def open_keeper(spec: ServiceSpec, folder: Path, *, server_faults: bool) -> ServiceKeeper:
    """What a site keeps warm of one service. Every trial has a server of its own, whether or not faults hit servers.

    The spec's references are replaced by values. UserError says what is missing and how to get it.
    """
    if spec.kind == "postgres":
        from holdfast.world.services.postgres import open_postgres

        return await open_postgres(spec, folder)
    if spec.kind == "mysql":
        from holdfast.world.services.mysql import open_mysql

        return await open_mysql(spec, folder)
    if spec.kind == "redis":
        from holdfast.world.services.redis import open_redis

        return await open_redis(spec, folder)
    if spec.kind == "external":
        from holdfast.world.services.external import open_external

        return await open_external(spec)
    if spec.kind == "http_mock":
        from holdfast.world.services.http_mock import open_mock

        return await open_mock(spec, folder)
    raise UserError(
        f"service {spec.name}: {spec.image or 'its image'} has no local server",
        hint="run it with --backend docker; without Docker there are postgres, mysql, redis, http_mock and external",
    )
