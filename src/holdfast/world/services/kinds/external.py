"""external: a service that runs elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import ServiceKeeper, ServicePlace


@dataclass(frozen=True)
class ExternalKind:
    """A service that runs elsewhere: any URL. Trials share it, and its state stays."""

    url: Annotated[str, Meta(description="Its address.", min_length=1)]

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.external import open_external

        return await open_external(spec)
