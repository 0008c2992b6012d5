"""Services of the world: real servers, fresh for every trial, with nothing of them left afterwards."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UserError
from holdfast.model.world import ServiceSpec
from holdfast.protocols import ServiceKeeper


async def open_keeper(spec: ServiceSpec, folder: Path, *, server_faults: bool, docker: bool = False) -> ServiceKeeper:
    """What a site keeps warm of one service. Every trial has a server of its own, whether or not faults hit servers.

    The spec's references are replaced by values. With `docker`, what no server of this machine can be is a container.
    UserError says what is missing and how to get it.
    """
    if spec.kind == "external":
        from holdfast.world.services.external import open_external

        return await open_external(spec)
    if spec.kind == "http_mock":
        from holdfast.world.services.http_mock import open_mock

        return await open_mock(spec, folder)
    if spec.kind == "container":
        return await _open_image(spec, folder, docker)
    from holdfast.world.services.server_program import NoServer

    try:
        return await _open_local(spec, folder)
    except NoServer as missing:
        if not docker or spec.image is None:
            raise
        return await _open_instead(spec, folder, missing)


async def _open_local(spec: ServiceSpec, folder: Path) -> ServiceKeeper:
    if spec.kind == "postgres":
        from holdfast.world.services.postgres import open_postgres

        return await open_postgres(spec, folder)
    if spec.kind == "mysql":
        from holdfast.world.services.mysql import open_mysql

        return await open_mysql(spec, folder)
    from holdfast.world.services.redis import open_redis

    return await open_redis(spec, folder)


async def _open_image(spec: ServiceSpec, folder: Path, docker: bool) -> ServiceKeeper:
    if not docker:
        raise UserError(
            f"service {spec.name}: {spec.image or 'its image'} has no local server",
            hint="run it with --backend docker; without it there are postgres, mysql, redis, http_mock and external",
        )
    from holdfast.world.services.container import open_container

    return await open_container(spec, folder)


async def _open_instead(spec: ServiceSpec, folder: Path, missing: UserError) -> ServiceKeeper:
    """As a container, since no server of this machine can be it."""
    try:
        return await _open_image(spec, folder, docker=True)
    except UserError as refused:
        raise UserError(f"{missing}; {refused}", hint=f"{refused.hint}, or {missing.hint}") from refused
