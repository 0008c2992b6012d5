"""Services of the world: real servers, fresh for every trial and removed after it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from holdfast import service_kinds
from holdfast.errors import NoServer, UserError
from holdfast.model.world import CONTAINER, ServiceSpec
from holdfast.protocols.service import ServiceKeeper, ServicePlace


async def open_keeper(spec: ServiceSpec, folder: Path, *, docker: bool = False) -> ServiceKeeper:
    """Open the keeper of one service, which provides a fresh server for every trial.

    References in the spec are replaced by values. With `docker`, a service that no server of this machine can provide
    runs as a container. Raises UserError with what is missing and how to get it.
    """
    place = ServicePlace(folder, docker)
    try:
        return await service_kinds.build_kind(spec).open_keeper(spec, place)
    except NoServer as missing:
        if not docker or spec.image is None:
            raise
        container = service_kinds.build_kind(replace(spec, kind=CONTAINER, settings={}))
        try:
            return await container.open_keeper(spec, place)
        except UserError as refused:
            hint = f"{refused.hint}, or {missing.hint}"
            raise UserError(f"{missing}; {refused}", code="service-unavailable", hint=hint) from refused
