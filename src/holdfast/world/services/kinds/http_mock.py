"""http_mock: a service that answers by its routes and records what it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import ServiceKeeper, ServicePlace
from holdfast.world.services.mock.routes import MockRoute


@dataclass(frozen=True)
class MockKind:
    """Answers by its routes, on 80, on 443 with the run's certificate, and on its ports."""

    record: Annotated[bool, Meta(description="Keep the requests of a mock.")] = False
    default_response: Annotated[int, Meta(description="Status where no route fits.", ge=100, le=599)] = 404
    routes: Annotated[tuple[MockRoute, ...], Meta(description="What a mock answers.")] = ()

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, tls=(443,), records=True, holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.mock.server import MockKeeper

        return MockKeeper(spec, self.routes, self.default_response)
