"""container: any image at all. What a kind stands in for is that kind; the rest needs an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast import plugins
from holdfast.errors import UserError
from holdfast.model.world import CONTAINER, ServiceSpec, ServiceTraits
from holdfast.protocols.service import ServiceKeeper, ServicePlace


@dataclass(frozen=True)
class AnyImage:
    """A container of an image, or the server of this machine that stands in for it."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        if not place.docker:
            raise UserError(
                f"service {spec.name}: {spec.image or 'its image'} has no local server",
                hint=f"run it with --backend docker; without it there are {', '.join(_others())}",
            )
        from holdfast.world.services.container.keeper import open_container

        return await open_container(spec, place.folder)


def _others() -> list[str]:
    return [name for name in plugins.names("services") if name != CONTAINER]
