"""http_mock: a service that answers by its routes and records what it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols import ServiceKeeper, ServicePlace
from holdfast.reading.written import Written


class MockRoute(Struct, frozen=True, omit_defaults=True):
    """What a mock answers to some requests; one whose `times` are used up is passed over."""

    path: Annotated[str, Meta(description="The path.", min_length=1)]
    method: Annotated[str, Meta(description="The HTTP method.", min_length=1)] = "GET"
    status: Annotated[int, Meta(description="The answer's status.", ge=100, le=599)] = 200
    response: Annotated[Any, Meta(description="The answer's body.")] = None
    headers: Annotated[dict[str, Written], Meta(description="The answer's headers.")] = field(default_factory=dict)
    delay_ms: Annotated[int, Meta(description="How late it answers.", ge=0)] = 0
    times: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How often it is used, 1 or more.")] = None


@dataclass(frozen=True)
class Mock:
    """Answers by its routes, on 80, on 443 with the run's certificate, and on its ports."""

    record: Annotated[bool, Meta(description="Keep the requests of a mock.")] = False
    default_response: Annotated[int, Meta(description="Status where no route fits.", ge=100, le=599)] = 404
    routes: Annotated[tuple[MockRoute, ...], Meta(description="What a mock answers.")] = ()

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=80, tls=(443,), holds=False)

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        from holdfast.world.services.http_mock import MockKeeper

        return MockKeeper(spec, self)
