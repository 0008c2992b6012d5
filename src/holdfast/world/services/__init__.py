"""Services of the world: real servers, fresh for every trial, with nothing of them left afterwards."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from holdfast import service_kinds
from holdfast.errors import NoServer, UserError
from holdfast.model.world import CONTAINER, ServiceSpec
from holdfast.protocols.service import ServiceKeeper, ServicePlace


async def open_keeper(spec: ServiceSpec, folder: Path, *, docker: bool = False) -> ServiceKeeper:
    """What a site keeps warm of one service. Every trial has a server of its own, whether or not faults hit servers.

    The spec's references are replaced by values. With `docker`, what no server of this machine can be is a container.
    UserError says what is missing and how to get it.
    """
    place = ServicePlace(folder, docker)
    try:
        return await service_kinds.made(spec).open_keeper(spec, place)
    except NoServer as missing:
        if not docker or spec.image is None:
            raise
        return await _open_instead(spec, place, missing)


async def _open_instead(spec: ServiceSpec, place: ServicePlace, missing: UserError) -> ServiceKeeper:
    """As a container, since no server of this machine can be it."""
    container = service_kinds.made(replace(spec, kind=CONTAINER, settings={}))
    try:
        return await container.open_keeper(spec, place)
    except UserError as refused:
        raise UserError(
            f"{missing}; {refused}", code="service-unavailable", hint=f"{refused.hint}, or {missing.hint}"
        ) from refused
